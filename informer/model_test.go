package informer_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/histories"
)

// follower is a handler that builds a map from its events alone, and checks each of them.
type follower struct {
	t       *testing.T
	server  *server
	handler *podHandler
	pause   func() time.Duration // sleeps so long at each event
	held    map[string]*corev1.Pod
	order   map[string]int // the newest version seen, by key and UID
	begun   bool           // after the initial list
	removed atomic.Bool
	missed  int

	told      func(old, now *corev1.Pod, inferred bool)
	recording *histories.Recording
}

func (f *follower) handle(e podEvent) {
	assert.False(f.t, f.removed.Load(), "no event after Remove has returned: %s %s", e.Type, e.Key)
	assert.Falsef(f.t, e.Initial && f.begun, "the initial list comes first: %s", e.Key)
	f.begun = f.begun || !e.Initial
	f.apply(e)
	f.told(e.Old, e.New, e.Initial || e.Missed)
	id := e.Key + string(e.Object().UID)
	version, err := strconv.Atoi(e.Object().ResourceVersion)
	assert.NoError(f.t, err)
	if e.Type == informer.Redelivered || e.Type == informer.Deleted && !e.Final {
		assert.Equal(f.t, f.order[id], version)
	} else {
		assert.Greaterf(f.t, version, f.order[id], "%s %s goes back", e.Type, e.Key)
	}
	f.order[id] = version
	if e.Missed {
		f.missed++
	} else if !e.Initial && e.Type != informer.Redelivered {
		// The handler was told every change up to this version, or a difference that leads to it.
		assert.Equal(f.t, f.server.at(e.Object().ResourceVersion), f.content(), "after %s %s", e.Type, e.Key)
	}
	if f.pause != nil {
		time.Sleep(f.pause()) // simulated time
	}
}

// apply changes the map by the event, which must begin where the key's last event ended.
func (f *follower) apply(e podEvent) {
	last, held := f.held[e.Key]
	switch e.Type {
	case informer.Added:
		assert.Falsef(f.t, held, "%s is added twice", e.Key)
		assert.Nil(f.t, e.Old)
	case informer.Updated:
		assertSame(f.t, last, e.Old)
		assert.Equal(f.t, last.UID, e.New.UID, "another UID is another object")
	case informer.Redelivered:
		assertSame(f.t, last, e.Old)
		assertSame(f.t, last, e.New)
	case informer.Deleted:
		assert.Truef(f.t, held, "%s is deleted but was not there", e.Key)
		assert.Nil(f.t, e.New)
		assert.Equal(f.t, last.UID, e.Old.UID)
		if !e.Final {
			assertSame(f.t, last, e.Old)
		}
		delete(f.held, e.Key)
		return
	}
	f.held[e.Key] = e.New
}

func (f *follower) content() content {
	return contentOf(func(yield func(*corev1.Pod) bool) {
		for _, p := range f.held {
			if !yield(p) {
				return
			}
		}
	})
}

// TestModel changes a collection at random, breaks its watches, and adds and removes handlers. It
// checks the package's promises at each event, and the state at the end.
func TestModel(t *testing.T) {
	missed := 0
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { missed += newModel(t, seed).run(400) })
		})
	}
	require.Positive(t, missed, "the model makes nobody miss anything")
}

type model struct {
	t        *testing.T
	random   *rand.Rand
	server   *server
	informer *informer.Informer[*corev1.Pod]
	handlers []*follower
}

func newModel(t *testing.T, seed uint64) *model {
	random := rand.New(rand.NewPCG(seed, 0))
	s := newServer("p0", "p1", "p2")
	return &model{
		t: t, random: random, server: s,
		informer: informer.New[*corev1.Pod](s, informer.WithRing(1+random.IntN(20))),
	}
}

func (m *model) run(steps int) (missed int) {
	m.addHandler()
	stop := start(m.t, m.informer)
	for range steps {
		m.step()
		time.Sleep(time.Duration(m.random.IntN(200)) * time.Millisecond)
	}
	time.Sleep(10 * time.Minute) // everybody catches up; redeliveries must end
	for _, f := range m.handlers {
		require.Equal(m.t, informer.Lag{}, f.handler.Lag())
	}
	require.NoError(m.t, stop())
	for _, f := range m.handlers {
		require.Equal(m.t, m.server.now(), f.content(), f.handler.Name())
		require.NoError(m.t, histories.Check(m.server.changes(), f.recording.History()), f.handler.Name())
		missed += f.missed
	}
	for _, f := range m.handlers {
		f.handler.Remove()
		f.removed.Store(true)
	}
	return missed
}

func (m *model) step() {
	name := fmt.Sprint("p", m.random.IntN(8))
	switch p := m.random.IntN(100); {
	case p < 4 && len(m.handlers) < 8:
		m.addHandler()
	case p < 7 && len(m.handlers) > 0:
		k := m.random.IntN(len(m.handlers))
		f := m.handlers[k]
		m.handlers = append(m.handlers[:k], m.handlers[k+1:]...)
		f.handler.Remove()
		f.removed.Store(true)
	case p < 10:
		m.server.disconnect(m.random.IntN(2) == 0)
	case p < 20: // a burst, so that watches and handlers fall behind
		for range m.random.IntN(60) {
			m.change(fmt.Sprint("p", m.random.IntN(8)))
		}
	default:
		m.change(name)
	}
}

// change updates a pod, or deletes it and sometimes creates it again.
func (m *model) change(name string) {
	if _, there := m.server.now()["ns/"+name]; there && m.random.IntN(3) == 0 {
		m.server.remove(name)
		if m.random.IntN(2) == 0 {
			return
		}
	}
	m.server.put(name)
}

func (m *model) addHandler() {
	f := &follower{t: m.t, server: m.server, held: map[string]*corev1.Pod{}, order: map[string]int{}}
	own := rand.New(rand.NewPCG(m.random.Uint64(), 0)) // used by the handler's goroutine alone
	if slow := m.random.IntN(3); slow > 0 {
		f.pause = func() time.Duration { return time.Duration(own.IntN(1+slow*slow*100)) * time.Millisecond }
	}
	var options []informer.HandlerOption
	if m.random.IntN(4) == 0 {
		options = append(options, informer.WithRedelivery(20*time.Second))
	}
	f.told, f.recording = histories.RecordHandler[*corev1.Pod](fmt.Sprint("handler ", len(m.handlers)))
	h, err := m.informer.AddHandler(f.handle, options...)
	require.NoError(m.t, err)
	f.handler = h
	m.handlers = append(m.handlers, f)
}
