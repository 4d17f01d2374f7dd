package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/harness"
)

// TestBlocksAreCounted counts blocks of a file as a coverage profile has them.
func TestBlocksAreCounted(t *testing.T) {
	s := newSource(`package a

func (s *set[K]) add(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each(func() {
		s.other.RLock() // and not s.mu.Lock()
	})
}

func never() { mu.Lock() }
`)
	p := newPart()
	p.add(parse("m/a/a.go:3.27,6.14 3 1\n"), s)
	p.add(parse("m/a/a.go:6.14,8.3 1 4\n"), s)
	require.Equal(t, "never", s.functions[11])
	require.Equal(t, &part{
		functions: map[string]int{"m/a.set.add": 4},
		files:     map[string]bool{"m/a/a.go": true},
		locks:     map[string]int{"m/a/a.go:4": 1, "m/a/a.go:7": 4},
	}, p)
	require.Equal(t, harness.Figures{"functions": 1, "files": 1, "locks": 5}, p.measures())

	g, err := parseGoals("functions=1,locks=4")
	require.NoError(t, err)
	require.EqualError(t, g.missed("handler", count{"m/a": p}), "handler: 5 locks, and the goal is at most 4")
	require.NoError(t, goals{"locks": 5}.missed("handler", count{"m/a": p}))
	_, err = parseGoals("functions")
	require.Error(t, err)
}
