package listwatchtest

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/null"
)

// Fault is one way of failing that a [Collection] was told to show. It exists from the call that
// makes it until it has struck often enough, or is lifted.
//
// A fault first strikes every matching request in flight: all at once, which counts as one strike.
// If there is none, and on every repetition, it strikes the next matching request. If several
// faults exist, the oldest acts first.
//
// All methods are safe for concurrent use.
type Fault struct {
	server   *Server
	name     string
	resource schema.GroupVersionResource
	verbs    []Verb // none: all
	times    int    // how often it strikes; if endless, how many strikes Wait waits for
	endless  bool
	acted    bool // it has had an effect without a strike
	effect   effect

	// Guarded by the server's lock.
	struck int
	lifted bool
}

// effect is the effect of a fault. Fields may be nil.
type effect struct {
	// underWay acts on an exchange in flight when the fault is made. It returns false if it does
	// not fit this exchange. It runs under the server's lock.
	underWay func(*exchange) bool
	// applies narrows the exchanges that request and write act on.
	applies func(*exchange) bool
	// request acts when a request arrives; true means that request has answered it.
	request func(*exchange) (answered bool)
	// write acts before a piece of an answer is written.
	write func(*exchange, []byte)
	lift  func()
}

// FaultOption sets how often a fault strikes, and which requests.
type FaultOption func(*Fault)

// Times makes a fault strike n times. The default is once.
func Times(n int) FaultOption { return func(f *Fault) { f.times, f.endless = n, false } }

// UntilLifted makes a fault strike until [Fault.Lift].
func UntilLifted() FaultOption { return func(f *Fault) { f.times, f.endless = 1, true } }

// On narrows a fault to requests of these verbs; none means all verbs, writes included. A watch
// list is a List and a Watch. The default is List and Watch. On does not apply to
// [Collection.Fail], which names its verb.
func On(verbs ...Verb) FaultOption { return func(f *Fault) { f.verbs = verbs } }

func (s *Server) inject(f *Fault, options []FaultOption) *Fault {
	s.t.Helper()
	f.server, f.times = s, 1
	if f.verbs == nil {
		f.verbs = []Verb{List, Watch}
	}
	if err := null.Options("listwatchtest: "+f.name, options, func(option FaultOption) { option(f) }); err != nil {
		s.t.Fatalf("%v", err)
	}
	if f.times < 1 {
		s.t.Fatalf("listwatchtest: %s: Times(%d): a fault strikes once at least", f.name, f.times)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	if f.effect.underWay == nil {
		return f
	}
	hit := false
	for x := range s.underWay {
		hit = f.isFor(x) && !x.broken && !x.muted && f.effect.underWay(x) || hit
	}
	if hit {
		f.strikeLocked()
	}
	return f
}

func (s *Server) faultsNow() []*Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

func (f *Fault) isFor(x *exchange) bool {
	return x.Resource == f.resource && (x.named(f.verbs) || x.isWatchList() && slices.Contains(f.verbs, List))
}

// tellMissed fails the test for each fault that never struck: the test does not show what it says.
func (s *Server) tellMissed() {
	if s.t.Failed() {
		return
	}
	for _, f := range s.faultsNow() {
		if f.missed() {
			s.t.Errorf("listwatchtest: %s of %s never struck: no request fitted it before the end of the test. "+
				"Make the fault before the request, wait for it with Wait, or Lift it if it may miss", f.name, f.resource.Resource)
		}
	}
}

func (f *Fault) missed() bool {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.struck == 0 && !f.lifted && !f.acted
}

// take reports whether the fault strikes an exchange now, and counts it.
func (f *Fault) take(x *exchange) bool {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.lifted || f.spentLocked() || !f.isFor(x) || f.effect.applies != nil && !f.effect.applies(x) {
		return false
	}
	f.strikeLocked()
	return true
}

func (f *Fault) strikeLocked() {
	f.struck++
	f.server.broadcastLocked()
}

func (f *Fault) spentLocked() bool { return !f.endless && f.struck >= f.times }

// Struck returns how often the fault has struck so far.
func (f *Fault) Struck() int {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.struck
}

// Wait blocks until the fault has struck as often as it should; once, if it strikes until it is
// lifted. It fails the test after a minute, or after six hours of a bubble's time.
func (f *Fault) Wait() {
	f.server.t.Helper()
	f.server.await(func() string { return fmt.Sprintf("%s to strike %d times", f.name, f.times) }, func() bool {
		return f.struck >= f.times
	})
}

// Lift ends the fault: it strikes no more. Its effects stay: a connection that was cut or muted
// does not recover. A fault that has neither struck nor been lifted fails the test at its end. Lift
// may be called at any time, and more than once.
func (f *Fault) Lift() {
	f.server.mu.Lock()
	first := !f.lifted
	f.lifted = true
	f.server.mu.Unlock()
	if first && f.effect.lift != nil {
		f.effect.lift()
	}
}

func cut() effect {
	return effect{
		underWay: func(x *exchange) bool {
			x.cutLocked()
			return true
		},
		request: func(x *exchange) bool {
			x.breakOff()
			return true
		},
	}
}

func mute() effect {
	return effect{
		underWay: func(x *exchange) bool {
			x.muteLocked()
			return true
		},
		request: func(x *exchange) bool {
			x.silence()
			return true
		},
	}
}

func refuse(applies func(*exchange) bool, err func(*exchange) error) effect {
	return effect{applies: applies, request: func(x *exchange) bool {
		x.refuse(err(x))
		return true
	}}
}

func truncate() effect {
	return effect{write: func(x *exchange, piece []byte) {
		_, _ = x.ResponseWriter.Write(piece[:len(piece)/2]) // it is cut in any case
		_ = http.NewResponseController(x.ResponseWriter).Flush()
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		x.cutLocked()
	}}
}
