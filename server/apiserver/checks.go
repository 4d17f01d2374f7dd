package apiserver

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// namedCheck is a line of /readyz beside those of the collections.
type namedCheck struct {
	name  string
	check func(context.Context) error
}

// AddCheck has /readyz and /healthz ask for something that the server needs beside its collections,
// such as its etcd: an error makes the server not ready, and its text is shown to whoever asks.
// Checks run at the same time as the probes of the collections, and return soon after ctx has
// ended.
func (s *Server) AddCheck(name string, check func(context.Context) error) {
	if check == nil {
		panic("apiserver: AddCheck: " + name + " has no function")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = append(s.checks, namedCheck{name, check})
}

// AddNotes has /readyz?verbose show lines beside those of the checks, by their names. They say what
// an operator should know, and leave the server ready.
func (s *Server) AddNotes(notes func() map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, notes)
}

// readiness is a line of /readyz.
type readiness struct {
	name, text string
	ready      bool
}

// readiness asks for everything that the server needs, all at once.
func (s *Server) readiness(ctx context.Context) []readiness {
	s.mu.RLock()
	checks, notes := slices.Clone(s.checks), slices.Clone(s.notes)
	s.mu.RUnlock()
	var asks []func() readiness
	for _, c := range checks {
		asks = append(asks, func() readiness {
			if err := c.check(ctx); err != nil {
				return readiness{c.name, err.Error(), false}
			}
			return readiness{c.name, "ok", true}
		})
	}
	for _, e := range s.endpoints() {
		asks = append(asks, func() readiness {
			h := e.probe(ctx)
			return readiness{h.name(), h.String(), h.answersReads()}
		})
	}
	lines := make([]readiness, len(asks))
	var asked sync.WaitGroup
	for i, ask := range asks {
		asked.Go(func() { lines[i] = ask() })
	}
	asked.Wait()
	for _, note := range notes {
		all := note()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			lines = append(lines, readiness{name, all[name], true})
		}
	}
	return lines
}
