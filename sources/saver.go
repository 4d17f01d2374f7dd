package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

// Checkpoint keeps the last complete state of each API server source in a folder, in a file of mode
// 0600 for each node and name of a source, and another one for [Owners]. Several API servers need
// names: see [Input.Named]. If the API server is away after a restart, the pods of the checkpoint
// are told at once, as [PodUpdate].Restored; later states of the API server are told as
// differences. A restored state does not count as read: Synced waits on, and SafeToPrune is false.
// A file that is incomplete, or of another node, is not used. It is a problem of the source until
// the next save.
//
// The folder must exist, and the agent alone may write it. It must keep secrets as safely as the
// pods demand. A file is not used if it is a link, or if others may write it. Each state is written
// to a new file of mode 0600 and renamed. The rest of a crashed write is removed a minute later, or
// at the next start after that. A state is written within a second of a change, and when Run ends.
// Default: no checkpoint. Under [LikeKubelet] there is none.
func Checkpoint(folder string) Option {
	return option(func(s *Sources) { s.checkpoints = folder })
}

// checkCheckpoints refuses two API servers that would write one file.
func (s *Sources) checkCheckpoints(feeds []*feed) error {
	if s.checkpoints == "" || s.likeKubelet {
		return nil
	}
	names := map[string]bool{}
	for _, f := range feeds {
		if _, ok := f.source.(checkpointer); !ok || f.isRemoved() {
			continue
		}
		if names[f.name] {
			return fmt.Errorf("sources: two API servers are named %q, and a checkpoint has the pods of one: tell them apart with Named", f.name)
		}
		names[f.name] = true
	}
	return nil
}

// saveEvery is the least time between two writes: the pods of a node change in bursts.
const saveEvery = time.Second

// saver writes the newest state.
type saver[S any] struct {
	file   checkpoint[S]
	log    logr.Logger
	states chan S // the newest that has not been written

	mu     sync.Mutex // guards failed
	failed error      // of the last load or save
}

func newSaver[S any](file checkpoint[S], log logr.Logger) *saver[S] {
	return &saver[S]{file: file, log: log, states: make(chan S, 1)}
}

// restoreInto fills a store with pods of a checkpoint, so that no older state is ever told.
func restoreInto(copied *undelta.Store[*corev1.Pod], restored Pods) error {
	if restored.ResourceVersion() == "" {
		return nil
	}
	return copied.Replace(func(yield func(*corev1.Pod, error) bool) {
		for _, pod := range restored.All() {
			if !yield(pod, nil) {
				return
			}
		}
	}, store.At(restored.ResourceVersion()))
}

// restore returns the state of an earlier run, or none if there is no good file.
func (s *saver[S]) restore() S {
	state, err := s.file.load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.note(err)
	}
	return state
}

// offer replaces the state to write. It does not block; one goroutine calls it.
func (s *saver[S]) offer(state S) {
	select {
	case <-s.states: // never written, and now out of date
	default:
	}
	s.states <- state
}

// run writes in the background until stop is called. stop writes the last state and waits for the
// end.
func (s *saver[S]) run() (stop func()) {
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
				s.note(s.file.save(state))
				pause.Reset(saveEvery)
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

func (s *saver[S]) saveLast() {
	select {
	case state := <-s.states:
		s.note(s.file.save(state))
	default:
	}
}

// note keeps the last error, and logs a new one.
func (s *saver[S]) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && (s.failed == nil || s.failed.Error() != err.Error()) {
		s.log.Error(err, "Problem")
	}
	s.failed = err
}

func (s *saver[S]) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
