package sources

import (
	"errors"
	"fmt"
	"slices"
)

// Add adds a source, before Run or while it runs. Its first state is told like that of the others. If
// Synced has not been closed yet, it waits for this source too. Add fails once Run has ended, on an
// input with an empty path or URL, and if two API servers of one name would share a checkpoint.
func (s *Sources) Add(input Input) error {
	if err := input.check(); err != nil {
		return fmt.Errorf("sources: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == over {
		return errors.New("sources: Run has ended: make new sources for another run")
	}
	f := s.feedOf(input)
	all := append(slices.Clone(s.list()), f)
	if err := s.checkCheckpoints(all); err != nil {
		return err
	}
	s.feeds.Store(&all)
	if s.phase == runs {
		s.launch(f)
	}
	return nil
}

// Remove stops the sources of that name, and waits for their end, but not for the reader of Updates. Then their pods are
// told as a REMOVE, and what was not told before is not told at all. It fails when no source has that name.
func (s *Sources) Remove(name string) error {
	s.mu.Lock()
	started := s.phase != idle
	var gone []*feed
	for _, f := range s.list() {
		if f.name == name {
			gone = append(gone, f)
		}
	}
	if !started {
		s.without(func(f *feed) bool { return f.name == name })
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return fmt.Errorf("sources: there is no source %q to remove", name)
	}
	for _, f := range gone {
		if started {
			f.remove()
		}
	}
	s.look()
	return nil
}

// drop forgets a source that was removed, once everything is told.
func (s *Sources) drop(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.without(func(other *feed) bool { return other == f })
	f.stopTimer()
	s.look() // what is left may all have failed
}

// without takes feeds out of the list. Its caller holds mu.
func (s *Sources) without(gone func(*feed) bool) {
	rest := slices.DeleteFunc(slices.Clone(s.list()), gone)
	s.feeds.Store(&rest)
}
