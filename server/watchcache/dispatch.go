package watchcache

import (
	"runtime"
	"time"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// dispatch finds the watchers that a change concerns, by the values of its object before and after.
// A write pays only for the fields and labels that watchers select by: a trigger goes with its last
// watcher. The cache's mu guards it.
type dispatch[T store.Object] struct {
	everything lane[T]
	triggers   map[source]*trigger[T] // by key, by field, and of selections without an equality
	labels     map[source]*trigger[T] // by label
}

func newDispatch[T store.Object]() dispatch[T] {
	return dispatch[T]{triggers: map[source]*trigger[T]{}, labels: map[source]*trigger[T]{}}
}

// among are the triggers with which that of a source is.
func (d *dispatch[T]) among(s source) map[source]*trigger[T] {
	if s.kind == byLabel {
		return d.labels
	}
	return d.triggers
}

// trigger tells objects apart by one value.
type trigger[T store.Object] struct {
	source   source
	of       func(T) (value string, ok bool)
	lanes    map[string]*lane[T]            // of selections that ask for the value alone
	narrower map[string]map[string]*lane[T] // of others: by value, then by the selection
}

// source is where a trigger's value comes from.
type source struct {
	kind  sourceKind
	label string // of the field or the label
}

type sourceKind int

const (
	byNothing sourceKind = iota // the value is empty
	byKey
	byField
	byLabel
)

// laneOf finds or makes the lane of a selection.
func (d *dispatch[T]) laneOf(s *selection[T], w *window[T]) *lane[T] {
	if s.everything() {
		return &d.everything
	}
	e := s.narrowest
	t := d.trigger(e)
	lanes, key, keep := t.lanes, e.value, (*selection[T])(nil)
	if !s.onlyAsksFor(e) {
		if t.narrower == nil {
			t.narrower = map[string]map[string]*lane[T]{}
		}
		if t.narrower[e.value] == nil {
			t.narrower[e.value] = map[string]*lane[T]{}
		}
		lanes, key, keep = t.narrower[e.value], s.text(), s
	}
	l := lanes[key]
	if l == nil {
		l = &lane[T]{trigger: t, value: e.value, keep: keep, history: history[T]{window: w}}
		lanes[key] = l
	}
	return l
}

func (d *dispatch[T]) trigger(e *equality[T]) *trigger[T] {
	all := d.among(e.source)
	if all[e.source] == nil {
		all[e.source] = &trigger[T]{source: e.source, of: e.of, lanes: map[string]*lane[T]{}}
	}
	return all[e.source]
}

// remove takes out a lane without members.
func (d *dispatch[T]) remove(l *lane[T]) {
	t := l.trigger
	if t == nil {
		return
	}
	lanes, key := t.lanes, l.value
	if l.keep != nil {
		lanes, key = t.narrower[l.value], l.keep.text()
	}
	if lanes[key] != l {
		return
	}
	if delete(lanes, key); l.keep != nil && len(lanes) == 0 {
		delete(t.narrower, l.value)
	}
	if len(t.lanes)+len(t.narrower) == 0 {
		delete(d.among(t.source), t.source)
	}
}

// parked holds waiting watchers that only this writer will wake.
type parked[T store.Object] struct {
	lists    []parkedList[T]
	watchers int
}

func (p parked[T]) wake() {
	for _, list := range p.lists {
		list.wake()
	}
}

// enter puts a change into its lanes, and adds the watchers that wait there to woken.
func (d *dispatch[T]) enter(c *change[T], woken *parked[T]) {
	into := func(l *lane[T], as effect) {
		if l == nil {
			return
		}
		if list := l.add(seen[T]{c, as}); list.n > 0 {
			woken.lists = append(woken.lists, list)
			woken.watchers += list.n
		}
	}
	c.histories = c.fewHistories[:0]
	for _, t := range d.triggers {
		t.enter(c, into)
	}
	if len(d.labels) > 0 {
		d.enterLabels(c, into)
	}
	if d.everything.readers > 0 { // which changes under the cache's mu
		into(&d.everything, unseen)
	}
}

func (t *trigger[T]) enter(c *change[T], into func(*lane[T], effect)) {
	var is, was string
	var has, had bool
	if !pointer.None(c.now) {
		is, has = t.of(c.now)
	}
	if !pointer.None(c.old) {
		was, had = t.of(c.old)
	}
	stays := has && had && is == was
	if has {
		t.enterValue(is, c, effectOf(stays, true), into)
	}
	if had && !stays {
		t.enterValue(was, c, departs, into)
	}
}

// enterValue puts a change into the lanes of a value; as is its effect on selections that ask for
// the value alone.
func (t *trigger[T]) enterValue(value string, c *change[T], as effect, into func(*lane[T], effect)) {
	into(t.lanes[value], as)
	if t.narrower == nil {
		return
	}
	for _, l := range t.narrower[value] {
		if as := c.effectOn(l.keep); as != unseen {
			into(l, as)
		}
	}
}

// enterLabels looks at the labels that watchers select by, or at the object's if they are fewer.
func (d *dispatch[T]) enterLabels(c *change[T], into func(*lane[T], effect)) {
	var is, was map[string]string
	if !pointer.None(c.now) {
		is = c.now.GetLabels()
	}
	if !pointer.None(c.old) {
		was = c.old.GetLabels()
	}
	if len(d.labels) <= len(is)+len(was) {
		for _, t := range d.labels {
			t.enter(c, into)
		}
		return
	}
	for label := range is {
		if t := d.labels[source{byLabel, label}]; t != nil {
			t.enter(c, into)
		}
	}
	for label := range was {
		if _, seen := is[label]; seen {
			continue
		}
		if t := d.labels[source{byLabel, label}]; t != nil {
			t.enter(c, into)
		}
	}
}

// each yields every lane.
func (d *dispatch[T]) each(do func(*lane[T])) {
	do(&d.everything)
	for _, t := range d.triggers {
		t.each(do)
	}
	for _, t := range d.labels {
		t.each(do)
	}
}

func (t *trigger[T]) each(do func(*lane[T])) {
	for _, l := range t.lanes {
		do(l)
	}
	for _, lanes := range t.narrower {
		for _, l := range lanes {
			do(l)
		}
	}
}

// join gives a watcher its lane, before it is told anything: from then on it is not cut for the
// changes of others. A watcher of everything reads the window to its end first. join reports false
// if there is more to read, or if a change is gone.
func (c *Cache[T]) join(w *Watcher[T]) bool {
	var own []seen[T]
	next := w.position
	find := func() (ok bool) {
		for ; !w.all; next++ {
			ch, ok := c.window.Read(next)
			if ch == nil || !ok {
				return ok
			}
			if as := ch.effectOn(w.keep); as != unseen {
				own = append(own, seen[T]{ch, as})
			}
		}
		return true
	}
	find() // most of them, while others may read and write
	c.mu.Lock()
	defer c.mu.Unlock()
	if !find() || next != c.window.Next() {
		return false
	}
	l := c.dispatch.laneOf(w.keep, &c.window)
	l.join(own)
	if w.position = next; len(own) > 0 {
		w.position = own[0].number
	}
	w.lane.Store(l)
	return true
}

// leave takes a watcher out of its lane. It joins again when it comes back.
func (c *Cache[T]) leave(w *Watcher[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := w.lane.Swap(nil)
	if l == nil {
		return
	}
	if w.position >= l.last && w.position >= l.gone {
		w.position = c.window.Next() // nothing since was for it
	}
	if l.leave(w) {
		c.dispatch.remove(l)
	}
	if l.lastNoted >= c.window.First() && l.lastNoted < c.window.Next() {
		c.window.At(l.lastNoted).forgetHistories()
	}
}

// crowd is the most watchers that a writer wakes itself, at a quarter of a microsecond each.
const crowd = 64

// runAhead is how long a writer may go on before its watchers run. In that time a few writes share
// one change of goroutines, and the watchers of one run beside the next where a processor is free.
const runAhead = 100 * time.Microsecond

// wake wakes the watchers that a write found, and lets them run: at once after a pause, and soon in
// a burst. A writer that is faster than its watchers would only make them later. A crowd is woken
// beside the writer, and each of the crowd wakes once for all writes meanwhile. Other goroutines
// take no more than half of the writer's time. The writing lock is held.
func (c *Cache[T]) wake() {
	switch woken := c.woken; {
	case woken.watchers == 0:
		return
	case woken.watchers <= crowd:
		woken.wake()
		clear(woken.lists)
		c.woken = parked[T]{lists: woken.lists[:0]}
	default:
		c.woken = parked[T]{}
		if !c.work.begin(woken.wake) {
			woken.wake()
		}
	}
	if began := time.Since(c.born); began >= c.yieldAt {
		runtime.Gosched()
		ended := time.Since(c.born)
		c.yieldAt = ended + max(runAhead, ended-began)
	}
}

// wakeAll makes every watcher look.
func (c *Cache[T]) wakeAll() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.dispatch.each(func(l *lane[T]) { l.unparkAll() })
}
