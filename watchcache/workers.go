package watchcache

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// workers look for the watchers that wait in [Watcher.Next]. So a waiting goroutine needs little
// stack, and does little when it runs with its memory in no processor's cache. A watcher that comes
// starts a worker, unless there is one, and a worker ends when nobody is left.
//
// Of many watchers in one lane, each looks for itself: by the time that all of them run, there is
// more to read at once.
type workers[T store.Object] struct {
	mu      sync.Mutex
	queue   []*Watcher[T] // from head on
	head    int
	running int
}

const (
	// turn is how many watchers a worker serves before their goroutines run.
	turn = 16
	// crowd is the most watchers that a writer wakes itself, and that workers look for in one lane.
	// For as many in the queue there is a worker, and at most one for each processor.
	crowd = 64
)

// wakeAll wakes the watchers of lists.
func (s *workers[T]) wakeAll(lists []parkedList[T]) {
	for i := range lists {
		s.wake(lists[i])
	}
}

// wake wakes a list of watchers that nobody else can wake. It does not block.
func (s *workers[T]) wake(list parkedList[T]) {
	switch {
	case list.alone != nil:
		list.alone()
		return
	case list.n == 1:
		s.add(list.first)
		return
	}
	for w := list.first; w != nil; {
		next := w.nextParked // from the call on, w is its own
		w.nextParked, w.previousParked = nil, nil
		switch {
		case w.ready != nil:
			w.ready()
		case list.n > crowd:
			w.told <- looks
		default:
			s.add(w)
		}
		w = next
	}
}

// add has a watcher served that waits in Next. It does not block.
func (s *workers[T]) add(w *Watcher[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	s.queue = append(s.queue, w)
	if s.running == 0 || len(s.queue)-s.head > crowd*s.running && s.running < runtime.GOMAXPROCS(0) {
		s.running++
		go s.run()
	}
}

// run is a worker.
func (s *workers[T]) run() {
	var taken [turn]*Watcher[T]
	for idle := false; ; {
		n, ends := s.take(taken[:], idle)
		if ends {
			return
		}
		for i, w := range taken[:n] {
			w.serve()
			taken[i] = nil
		}
		idle = n == 0
		runtime.Gosched() // lets them run
	}
}

// take takes watchers. If there are none, a worker that was idle before ends.
func (s *workers[T]) take(into []*Watcher[T], idle bool) (n int, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = copy(into, s.queue[s.head:])
	clear(s.queue[s.head : s.head+n])
	s.head += n
	if ends = n == 0 && idle; ends {
		s.running--
	}
	return n, ends
}

// What Next is told.
const (
	looks    = false // the watcher looks for itself
	answered = true
)

// serve looks for a watcher whose goroutine waits in Next. If there is much to look through, that
// is left to the goroutine, so that no other watcher waits for it.
func (w *Watcher[T]) serve() {
	if w.hasMuch() {
		w.told <- looks
		return
	}
	defer func() {
		if problem := recover(); problem != nil {
			w.answer.err = &panicked{fmt.Sprintf("%v\n\n%s", problem, debug.Stack())}
			w.told <- answered
		}
	}()
	for {
		events, waits, err := w.look(w.ctx)
		if !waits {
			w.answer = answer[T]{events, err}
			w.told <- answered
			return
		}
		if w.park(w.ctx, nil) {
			return
		}
	}
}

func (w *Watcher[T]) hasMuch() bool {
	l := w.lane.Load()
	return w.initial != nil ||
		(l == nil || l.trigger == nil) && w.cache.window.Next()-w.position > batchSize
}

// answer is what a worker has found.
type answer[T store.Object] struct {
	events []Delivery[T]
	err    error
}

// take returns the answer, or panics.
func (a *answer[T]) take() ([]Delivery[T], error) {
	events, err := a.events, a.err
	*a = answer[T]{}
	if p, ok := err.(*panicked); ok {
		panic(p.text)
	}
	return events, err
}

// panicked is the panic of a selector or of a field's function. It goes on in the goroutine of the
// watcher, where a server may expect it.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }
