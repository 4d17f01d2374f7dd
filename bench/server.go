package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// Versions of the collection; those of the objects are below.
const (
	firstVersion   = 2_000_000
	changedOffset  = 1_000_000 // of an object that the relist finds changed
	changedVersion = 3_000_000
	eventVersion   = 4_000_000
)

// server sends prepared bytes of one collection: the first state, and the one that the relist
// finds. It has one reader at a time, which gives it orders.
type server struct {
	reading        reading
	codec          world.Codec
	first, changed [][]byte

	hasChanged atomic.Bool             // the relist's state is served
	open       sync.WaitGroup          // the watches
	asked      atomic.Int64            // when the state was last asked for, Unix nanoseconds
	do         chan func(world.Stream) // for the open watch
}

// serve is the process of the server.
func serve(ctx context.Context, r reading) {
	s := &server{reading: r, codec: world.CodecOf(r.Kind, r.PerSet, r.Form), do: make(chan func(world.Stream))}
	s.prepare()
	mux := harness.Control(nil, map[string]func(*http.Request) any{
		"/reset": s.reset, "/change": s.change, "/events": s.events, "/pace": s.pace,
		"/asked": func(*http.Request) any { return s.asked.Load() },
	})
	mux.HandleFunc(s.codec.Path(), s.collection)
	harness.Serving{}.Say(ctx, mux, nil)
}

func (s *server) prepare() {
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // half a million pods are 4 GB
	order := s.codec.Order(0, s.reading.Objects)
	if s.reading.Shuffled {
		order = rand.New(rand.NewPCG(3, 4)).Perm(s.reading.Objects)
	}
	s.first = make([][]byte, len(order))
	for at, i := range order {
		s.first[at] = s.codec.Object(i, i, 0)
	}
	s.changed = slices.Clone(s.first)
	for at, i := range order {
		if i%100 == 0 {
			s.changed[at] = s.codec.Object(i, changedOffset+i, 1)
		}
	}
}

// reset goes back to the first state. It waits for the last reader's watch to end, which would take
// the events of the next one.
func (s *server) reset(*http.Request) any {
	s.open.Wait()
	s.hasChanged.Store(false)
	return nil
}

func (s *server) collection(w http.ResponseWriter, r *http.Request) {
	state := world.State{Codec: s.codec, Items: slices.Values(s.first), Version: world.Version(firstVersion)}
	if s.hasChanged.Load() {
		state.Items, state.Version = slices.Values(s.changed), world.Version(changedVersion)
	}
	if query := r.URL.Query(); query.Get("sendInitialEvents") == "true" || query.Get("watch") != "true" {
		s.asked.Store(time.Now().UnixNano())
	}
	state.Send(w, r, func(on world.Stream) bool { return s.follow(r, on) })
}

// follow keeps a watch open and sends on it as the reader asks, until the state has changed.
func (s *server) follow(r *http.Request, on world.Stream) (goesOn bool) {
	s.open.Add(1)
	defer s.open.Done()
	for {
		select {
		case <-r.Context().Done():
			return false
		case do := <-s.do:
			do(on)
			on.Flush()
			if s.hasChanged.Load() {
				return false
			}
		}
	}
}

// change makes the reader list again, and find one object in a hundred changed.
func (s *server) change(*http.Request) any {
	s.do <- func(on world.Stream) {
		s.hasChanged.Store(true)
		_, _ = on.Write(on.Codec.Expired())
	}
	return nil
}

// events sends the changes: each of them a state of an object with a version of its own. They come
// by turns of the objects, in no order that would help a reader.
func (s *server) events(*http.Request) any {
	s.do <- func(on world.Stream) {
		states := s.states()
		random := rand.New(rand.NewPCG(1, 2))
		random.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
		s.asked.Store(time.Now().UnixNano())
		for n := range s.reading.Events {
			states[n%len(states)][n/len(states)%2].send(on, n)
		}
	}
	return nil
}

// pace sends changes as events does, each in a write of its own, at a rate, and returns when each
// was sent.
func (s *server) pace(r *http.Request) any {
	sent := make(chan []int64)
	s.do <- func(on world.Stream) {
		states := s.states()
		random := rand.New(rand.NewPCG(1, 3))
		at := make([]int64, harness.Number(r, "count"))
		began, rate := time.Now(), time.Duration(harness.Number(r, "rate"))
		for n := range at {
			states[random.IntN(len(states))][n%2].send(on, n)
			time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / rate)))
			at[n] = time.Now().UnixNano()
			on.Flush()
		}
		sent <- at
	}
	return <-sent
}

// states are two states of each object.
func (s *server) states() [][2]state {
	states := make([][2]state, s.reading.Objects)
	for i := range states {
		states[i] = [2]state{stateOf(s.codec.Object(i, i, 1), i), stateOf(s.codec.Object(i, i, 2), i)}
	}
	return states
}

// state is an encoded object, in which its version can be exchanged for another one of equal
// length.
type state struct{ object, version []byte }

func stateOf(object []byte, version int) state {
	text := world.Version(version)
	at := bytes.Index(object, []byte(text))
	return state{object, object[at : at+len(text)]}
}

// send writes the object with the version of an event.
func (s state) send(on world.Stream, event int) {
	copy(s.version, world.Version(eventVersion+event))
	on.Codec.Event(on, watch.Modified, s.object)
}
