package checkpoint

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/internal/access"
)

const (
	// saveEvery is the least time between two writes: the pods of a node change in bursts.
	saveEvery = time.Second
	// saveShare bounds the work for a large state: each write is followed by so many times its own
	// duration without one.
	saveShare = 20
)

// Saver writes the newest state of a run to a file, and reads that of the run before.
type Saver[S any] struct {
	file   File[S]
	log    logr.Logger
	states chan S // the newest that has not been written

	mu     sync.Mutex // guards failed
	failed error      // of the last load or save
}

// NewSaver makes a Saver that logs new problems.
func NewSaver[S any](file File[S], log logr.Logger) *Saver[S] {
	return &Saver[S]{file: file, log: log, states: make(chan S, 1)}
}

// Restore returns the state of an earlier run, or none if there is no good file.
func (s *Saver[S]) Restore() S {
	state, err := s.file.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.note(err)
	}
	return state
}

// Offer replaces the state to write. It does not block; one goroutine calls it.
func (s *Saver[S]) Offer(state S) {
	select {
	case <-s.states: // never written, and now out of date
	default:
	}
	s.states <- state
}

// Run writes in the background until stop is called. stop writes the last state and waits for the
// end.
func (s *Saver[S]) Run() (stop func()) {
	stopping, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-pause.C:
			case <-stopping:
				s.saveLast()
				return
			}
			select {
			case state := <-s.states:
				began := time.Now()
				s.note(s.file.Save(state))
				pause.Reset(max(saveEvery, saveShare*time.Since(began)))
			case <-stopping:
				s.saveLast()
				return
			}
		}
	}()
	return func() {
		close(stopping)
		<-ended
	}
}

func (s *Saver[S]) saveLast() {
	select {
	case state := <-s.states:
		s.note(s.file.Save(state))
	default:
	}
}

// note keeps the last error, and logs a new one.
func (s *Saver[S]) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && (s.failed == nil || s.failed.Error() != err.Error()) {
		s.log.Error(err, "Problem")
	}
	s.failed = err
}

// Problem is the error of the last load or save, or nil. It is safe for concurrent use.
func (s *Saver[S]) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return nil
	}
	return access.Mark("checkpoint", s.failed)
}
