package reflector

import (
	"iter"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// load is a store's Replace at work beside the watch that brings its objects. Replace reads a
// sequence, and a watch is one, so one of the two is a coroutine: Replace, which ends first. A
// watch that has its state costs no coroutine then.
type load[T store.Object] struct {
	read    *listRead
	outcome outcome // once put has returned false, or stop has returned

	event listwatch.Event[T]
	err   error
	next  func() (struct{}, bool)
	stop  func() // ends the sequence, and returns when Replace has
}

// newLoad begins to replace, up to the point where the first event is wanted.
func newLoad[T store.Object](read *listRead, replace func(iter.Seq2[listwatch.Event[T], error]) outcome) *load[T] {
	l := &load[T]{read: read}
	l.next, l.stop = iter.Pull(func(wanted func(struct{}) bool) {
		l.outcome = replace(func(yield func(listwatch.Event[T], error) bool) {
			for wanted(struct{}{}) && yield(l.event, l.err) {
			}
		})
	})
	l.next()
	return l
}

// put hands over an event, and reports whether another one is wanted.
func (l *load[T]) put(event listwatch.Event[T], err error) bool {
	l.event, l.err = event, err
	_, wanted := l.next()
	return wanted
}
