package sources

import (
	"errors"
	"fmt"
	"slices"
)

// Add adds a source, before Run or during it. The first state of the source is told like that of
// any other. If Synced has not closed yet, it waits for this source too. Add fails once Run has
// ended, on an input with a bad option or an empty path or URL, and if two API servers of one name
// would share a checkpoint.
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

// Remove stops the sources with this name and waits for their end, but not for the reader of
// Updates. Then the reader is told a REMOVE of their pods; their pending states are dropped. Remove
// fails if no source has the name.
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
			f.stop()
			s.changed(f, Pods{})
			f.remove()
		}
	}
	s.look()
	return nil
}

// drop forgets a removed source, once the reader has been told everything.
func (s *Sources) drop(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.without(func(other *feed) bool { return other == f })
	f.stopTimer()
	s.look() // all the remaining sources may have failed
}

// without takes feeds out of the list. Its caller holds mu.
func (s *Sources) without(gone func(*feed) bool) {
	rest := slices.DeleteFunc(slices.Clone(s.list()), gone)
	s.feeds.Store(&rest)
}
