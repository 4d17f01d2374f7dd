package loop

import (
	"container/list"
	"sync"
	"time"
)

// share is the part of the turns that the patient lane has while both have keys: one in so many.
const share = 5

// lanes is a workqueue.Queue: keys with a change are urgent, all others are patient. Each lane is
// first in, first out. So a patient key waits for at most share times the patient keys before it,
// and urgent keys have all other turns.
type lanes[K comparable] struct {
	mu      sync.Mutex // guards all fields
	queues  [2]list.List
	waiting map[K]*list.Element
	urgent  map[K]bool // keys that were urged since they were taken last
	taken   map[K]bool // keys in work, and whether they were urgent
	turns   int        // while both lanes had keys
}

// The lanes.
const (
	patient = iota
	urgent
)

type waiting[K comparable] struct {
	key  K
	lane int
	at   time.Time
}

func newLanes[K comparable]() *lanes[K] {
	return &lanes[K]{waiting: map[K]*list.Element{}, urgent: map[K]bool{}, taken: map[K]bool{}}
}

// urge makes a key urgent until it is taken. Call it before the key is added to the workqueue. A
// key that is taken between the two calls is patient the next time.
func (l *lanes[K]) urge(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent[key] = true
}

// Push adds a key.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(waiting[K]{key, patient, time.Now()})
}

func (l *lanes[K]) push(w waiting[K]) {
	if l.urgent[w.key] {
		w.lane = urgent
	}
	l.waiting[w.key] = l.queues[w.lane].PushBack(w)
}

// Touch moves a waiting key that has become urgent to the other lane.
func (l *lanes[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.waiting[key]
	if w := e.Value.(waiting[K]); w.lane == patient && l.urgent[key] {
		l.queues[patient].Remove(e)
		l.push(w)
	}
}

// Pop takes the next key.
func (l *lanes[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := urgent
	if l.queues[urgent].Len() == 0 {
		lane = patient
	} else if l.queues[patient].Len() > 0 {
		if l.turns++; l.turns%share == 0 {
			lane = patient
		}
	}
	w := l.queues[lane].Remove(l.queues[lane].Front()).(waiting[K])
	l.taken[w.key] = l.urgent[w.key]
	delete(l.urgent, w.key)
	delete(l.waiting, w.key)
	return w.key
}

// settle ends the work on a key that was taken. With again, the key is as urgent as it was then.
func (l *lanes[K]) settle(key K, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if again && l.taken[key] {
		l.urgent[key] = true
	}
	delete(l.taken, key)
}

// Len counts the keys.
func (l *lanes[K]) Len() int { all := l.depth(); return all[patient].keys + all[urgent].keys }

// depth is what waits in a lane.
type depth struct {
	keys   int
	oldest time.Duration // how long the oldest key has waited
}

func (l *lanes[K]) depth() (all [2]depth) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.queues {
		all[i].keys = l.queues[i].Len()
		if e := l.queues[i].Front(); e != nil {
			all[i].oldest = time.Since(e.Value.(waiting[K]).at)
		}
	}
	return all
}
