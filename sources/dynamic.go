package sources

import (
	"errors"
	"fmt"
	"slices"
)

// Named gives sources a name of their own, which their updates and [manifest.SourceAnnotation] have, in place of the name of their
// kind. It tells sources of one kind apart, for Remove and SafeToPrune. Its arguments are what New takes: APIServer, File,
// HTTP or With.
func Named(name string, sources ...Option) Option {
	return func(s *Sources) {
		s.mark(sources, func(f *feed) { f.name = name })
	}
}

// Add adds sources, while Run runs or before. The option is what New takes to add one: APIServer,
// File, HTTP or With. Their first state is told like that of the others; where Synced has not been
// closed yet, it waits for them too. It fails once Run has ended, on an option that adds no source
// or one with an empty path or URL, and where two API servers of one name would share a checkpoint.
func (s *Sources) Add(option Option) error {
	given := &Sources{}
	option(given)
	if len(given.refused) > 0 {
		return fmt.Errorf("sources: %w", given.refused[0])
	}
	if len(given.feeds) == 0 {
		return errors.New("sources: nothing to add: give Add one of APIServer, File, HTTP and With")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == over {
		return errors.New("sources: Run has ended: make new sources for another run")
	}
	all := append(slices.Clone(s.feeds), given.feeds...)
	if err := s.checkCheckpoints(all); err != nil {
		return err
	}
	s.feeds = all
	for _, f := range given.feeds {
		s.adopt(f)
		if s.phase == runs {
			s.launch(f)
		}
	}
	return nil
}

// Remove stops the sources of that name, and waits for their end, but not for the reader of Updates. Then their pods are
// told as a REMOVE, and what was not told before is not told at all. It fails when no source has that name.
func (s *Sources) Remove(name string) error {
	s.mu.Lock()
	started := s.phase != idle
	var gone []*feed
	for _, f := range s.feeds {
		if f.name == name {
			gone = append(gone, f)
		}
	}
	if !started {
		s.feeds = slices.DeleteFunc(slices.Clone(s.feeds), func(f *feed) bool { return f.name == name })
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
	s.feeds = slices.DeleteFunc(slices.Clone(s.feeds), func(other *feed) bool { return other == f })
	f.stopTimer()
	s.look() // what is left may all have failed
}
