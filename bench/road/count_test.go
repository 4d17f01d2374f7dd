package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBlocksAreCounted counts blocks of a file as a coverage profile has them.
func TestBlocksAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(file, []byte(`package a

func (s *set[K]) add(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each(func() {
		s.other.RLock()
	})
}

func never() { mu.Lock() }
`), 0o600))
	s, err := parse(file)
	require.NoError(t, err)
	p := newPart()
	p.add("m/a/a.go", s, []block{
		{from: position{3, 27}, to: position{6, 14}, statements: 3, times: 1},
		{from: position{6, 14}, to: position{8, 3}, statements: 1, times: 4},
	})
	require.Equal(t, &part{
		functions:  map[string]int{"m/a.set.add": 4},
		files:      map[string]bool{"m/a/a.go": true},
		locks:      map[string]int{"m/a/a.go:4": 1, "m/a/a.go:7": 4},
		statements: 4,
	}, p)
	require.Equal(t, map[string]int{"functions": 1, "files": 1, "statements": 4, "locks": 5}, p.measures())

	g, err := parseGoals("functions=1,locks=4")
	require.NoError(t, err)
	require.EqualError(t, g.missed("handler", count{"m/a": p}), "handler: 5 locks, and the goal is at most 4")
	require.NoError(t, goals{"locks": 5}.missed("handler", count{"m/a": p}))
	_, err = parseGoals("functions")
	require.Error(t, err)
}
