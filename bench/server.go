package main

import (
	"bufio"
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
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

// server sends prepared bytes. It has one reader at a time, which gives it orders by POST.
type server struct {
	settings settings
	contents map[world.Form]*content

	changed atomic.Bool             // the relist's state is served
	open    sync.WaitGroup          // the watches
	asked   atomic.Int64            // when the state was last asked for, Unix nanoseconds
	do      chan func(stream)       // for the open watch
	sent    atomic.Pointer[[]int64] // when each event of the last pace was sent, Unix nanoseconds
}

// content is one collection: the first state, and the one that the relist finds.
type content struct {
	codec          world.Codec
	first, changed [][]byte
	prepare        sync.Once
}

type stream struct {
	w     *bufio.Writer
	codec world.Codec
	flush func() // down to the socket
}

// serve serves until its input ends.
func serve(ctx context.Context, s settings) error {
	srv := &server{settings: s, contents: map[world.Form]*content{}, do: make(chan func(stream))}
	for _, f := range []world.Form{world.Protobuf, world.JSON, world.Tree} {
		srv.contents[f] = &content{codec: world.CodecOf(s.Kind, s.PerSet, f)}
	}
	mux := http.NewServeMux()
	mux.HandleFunc(srv.contents[world.Protobuf].codec.Path(), srv.collection)
	mux.HandleFunc(srv.contents[world.Tree].codec.Path(), srv.collection)
	for path, act := range map[string]func(*http.Request) (any, error){
		"/reset": srv.reset, "/change": srv.change, "/events": srv.events, "/pace": srv.pace,
		"/sent":  func(*http.Request) (any, error) { return srv.sent.Load(), nil },
		"/asked": func(*http.Request) (any, error) { return srv.asked.Load(), nil },
	} {
		mux.HandleFunc(path, harness.Answer(act))
	}
	url, err := harness.Serving{}.Serve(mux)
	if err == nil {
		harness.Say(ctx, url)
	}
	return err
}

// reset goes back to the first state and prepares it, outside any measurement. It waits for
// the last reader's watch to end, which would take the events of the next one.
func (s *server) reset(r *http.Request) (any, error) {
	s.open.Wait()
	s.changed.Store(false)
	c := s.contents[world.Form(r.URL.Query().Get("form"))]
	c.prepare.Do(func() {
		defer debug.SetGCPercent(debug.SetGCPercent(25)) // half a million pods are 4 GB
		count := s.settings.Pods
		if c.codec.Form == world.Tree {
			count = s.settings.Widgets
		}
		order := c.codec.Order(0, count)
		if s.settings.Shuffled {
			order = rand.New(rand.NewPCG(3, 4)).Perm(count)
		}
		c.first = make([][]byte, count)
		for at, i := range order {
			c.first[at] = c.codec.Object(i, i, 0)
		}
		c.changed = slices.Clone(c.first)
		for at, i := range order {
			if i%100 == 0 {
				c.changed[at] = c.codec.Object(i, changedOffset+i, 1)
			}
		}
	})
	return nil, nil
}

func (s *server) collection(w http.ResponseWriter, r *http.Request) {
	c := s.contents[world.JSON]
	switch {
	case r.URL.Path == s.contents[world.Tree].codec.Path():
		c = s.contents[world.Tree]
	case strings.Contains(r.Header.Get("Accept"), "protobuf"):
		c = s.contents[world.Protobuf]
	}
	items, version := c.first, world.Version(firstVersion)
	if s.changed.Load() {
		items, version = c.changed, world.Version(changedVersion)
	}
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	watching := r.URL.Query().Get("watch") == "true"
	if initial || !watching {
		s.asked.Store(time.Now().UnixNano())
	}
	w.Header().Set("Content-Type", c.codec.Form.ContentType())
	if watching {
		w.Header().Set("Content-Type", c.codec.Form.WatchType())
	}
	out := bufio.NewWriterSize(w, 256<<10)
	if !watching {
		c.codec.List(items, version, func(b []byte) { _, _ = out.Write(b) })
		_ = out.Flush()
		return
	}
	if initial {
		c.codec.Initial(out, items, version)
	}
	s.follow(r, stream{w: out, codec: c.codec, flush: func() {
		_ = out.Flush()
		w.(http.Flusher).Flush()
	}})
}

// follow keeps a watch open and sends on it as the reader asks.
func (s *server) follow(r *http.Request, on stream) {
	s.open.Add(1)
	defer s.open.Done()
	for {
		on.flush()
		select {
		case <-r.Context().Done():
			return
		case do := <-s.do:
			do(on)
			_ = on.w.Flush()
			if s.changed.Load() {
				return
			}
		}
	}
}

// change makes the reader list again, and find one object in a hundred changed.
func (s *server) change(*http.Request) (any, error) {
	s.do <- func(on stream) {
		s.changed.Store(true)
		_, _ = on.w.Write(on.codec.Expired())
	}
	return nil, nil
}

// events sends the changes: each of them a state of one of the first pods with a version of its
// own. The pods change by turns, in no order that would help a reader.
func (s *server) events(*http.Request) (any, error) {
	s.do <- func(on stream) {
		states := s.states(on.codec)
		random := rand.New(rand.NewPCG(1, 2))
		random.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
		s.asked.Store(time.Now().UnixNano())
		for n := range s.settings.Events {
			now := states[n%len(states)][n/len(states)%2]
			copy(now.version, world.Version(eventVersion+n))
			on.codec.Event(on.w, watch.Modified, now.object)
		}
	}
	return nil, nil
}

// states are two states of each of the first pods.
func (s *server) states(c world.Codec) [][2]state {
	states := make([][2]state, s.settings.EventPods)
	for i := range states {
		states[i] = [2]state{stateOf(c.Object(i, i, 1), i), stateOf(c.Object(i, i, 2), i)}
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
