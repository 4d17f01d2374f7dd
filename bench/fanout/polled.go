package main

import (
	"context"
	"errors"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/watchcache"
)

// polled is our cache, whose watchers wait without a goroutine: a few workers serve all of them.
type polled struct {
	ours
	ready chan *polledWatch
}

func newPolled(o ours) polled {
	p := polled{o, make(chan *polledWatch, 1<<17)} // room for every watcher of a row
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for w := range p.ready {
				w.run()
			}
		}()
	}
	return p
}

type polledWatch struct {
	watcher *watchcache.Watcher[*corev1.Pod]
	resume  func()
	take    func(version string)
	lost    func(error)
}

func (p polled) watch(_ context.Context, node, version string, take func(string), lost func(error)) error {
	w, err := p.watcher(node, version)
	if err != nil {
		return err
	}
	follows := &polledWatch{watcher: w, take: take, lost: lost}
	follows.resume = func() { p.ready <- follows }
	follows.resume()
	return nil
}

func (w *polledWatch) run() {
	for {
		events, waits, err := w.watcher.Poll(context.Background(), w.resume)
		switch {
		case waits:
			return
		case err != nil || len(events) == 0:
			w.lost(errors.Join(errEnded, err))
			return
		}
		takeAll(events, w.take)
	}
}
