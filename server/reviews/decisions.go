package reviews

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"math"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

const (
	// reviewTimeout bounds a review, as on API servers behind the aggregator.
	reviewTimeout = 10 * time.Second
	// renewPatience is how long a request waits for a renewal if it has a decision to fall back on.
	renewPatience = 2 * time.Second
	// retryEvery is how often the upstream is asked while it does not answer.
	retryEvery = 5 * time.Second
	// atOnce bounds the questions of a lane that are in flight.
	atOnce = 32
	// mostNew bounds the questions without a decision that are in flight or wait for it.
	mostNew = 1024
	// mostBytes bounds the questions of a lane.
	mostBytes = 16 << 20
)

var errBusy = errors.New("too many reviews at once")

// key stands for a question. It has nothing of its content: a token is nowhere kept as a key.
type key [sha256.Size]byte

// keys makes the keys of this process, which no other process can compute.
type keys [32]byte

func newKeys() (k keys) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// of is the key of a question. Equal questions are equal bytes.
func (k keys) of(question []byte) (made key) {
	mac := hmac.New(sha256.New, k[:])
	_, _ = mac.Write(question) // never fails
	mac.Sum(made[:0])
	return made
}

// decision is an answer of the upstream. It does not change.
type decision[A any] struct {
	answer  A
	granted bool
	expires time.Time // then the question is asked again
	ends    time.Time // a grant counts until then, if the upstream does not answer
	held    bool      // the upstream has not answered the renewal
}

// holds reports whether a decision may count although it has expired.
func (d *decision[A]) holds(now time.Time) bool {
	return d != nil && d.granted && now.Before(d.ends)
}

// holding is the decision for the time until the next try.
func (d *decision[A]) holding(now time.Time) *decision[A] {
	longer := *d
	longer.held, longer.expires = true, now.Add(spread(retryEvery))
	if d.ends.Before(longer.expires) {
		longer.expires = d.ends
	}
	return &longer
}

// spread is a time, or up to a fifth less.
func spread(d time.Duration) time.Duration {
	if d < 5 {
		return d
	}
	return d - mathrand.N(d/5)
}

// question is one review.
type question[A any] struct {
	key  key
	size int // in bytes
	// ask returns a *failure if the upstream gives no answer.
	ask func(ctx context.Context) (answer A, granted bool, err error)
}

// flight is a question that is being asked.
type flight[A any] struct {
	done     chan struct{} // closed when the next fields are set
	decision *decision[A]
	err      error
}

// lane is questions that take turns.
type lane struct {
	places chan struct{} // one for each question in flight
	most   int
	count  int
	bytes  int
}

// full reports whether a question finds no room to wait in.
func (l *lane) full(size int) bool {
	return l.count >= l.most || l.bytes+size > mostBytes
}

// pin keeps a decision that open watches depend on.
type pin[A any] struct {
	watchers int
	decision *decision[A] // nil: none any more
}

// decisions are the answers to one kind of review. Each question is asked once, whatever the number
// of requests that wait for it.
type decisions[A any] struct {
	times times

	mu sync.Mutex // guards the next fields, but for the places of lanes
	// Renewals have a lane of their own: clients with wrong tokens cannot keep them waiting.
	renewals, others lane

	granted *recent[*decision[A]]
	refused *recent[*decision[A]] // of its own, so that no refusal displaces a grant
	pins    map[key]*pin[A]
	flights map[key]*flight[A]
	review  Review // without the numbers of decisions
}

func newDecisions[A any](s settings, weigh func(A) int) *decisions[A] {
	weighed := func(d *decision[A]) int { return weigh(d.answer) }
	return &decisions[A]{
		times:    s.times,
		renewals: lane{places: make(chan struct{}, atOnce), most: math.MaxInt},
		others:   lane{places: make(chan struct{}, atOnce), most: mostNew},
		granted:  newRecent(s.entries, s.bytes, weighed),
		refused:  newRecent(s.entries/8, s.bytes/8, weighed),
		pins:     map[key]*pin[A]{},
		flights:  map[key]*flight[A]{},
	}
}

// decide returns a decision that counts now: a remembered one, or the answer to a question. The end
// of ctx ends the wait, and not the question. An error is that of ctx, a *failure, or errBusy.
func (d *decisions[A]) decide(ctx context.Context, q question[A]) (*decision[A], error) {
	now := time.Now()
	d.mu.Lock()
	have := d.lookupLocked(q.key)
	if have != nil && now.Before(have.expires) {
		d.mu.Unlock()
		return have, nil
	}
	f := d.flights[q.key]
	if f == nil {
		f = d.startLocked(q, have)
	}
	d.mu.Unlock()
	switch {
	case f == nil && have.holds(now):
		return have.holding(now), nil
	case f == nil:
		return nil, errBusy
	}
	var patience <-chan time.Time
	if have.holds(now) {
		wait := min(renewPatience, have.ends.Sub(now))
		if have.held { // the upstream was away at the last try
			wait = 0
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-f.done:
		return f.decision, f.err
	case <-patience:
		return have.holding(time.Now()), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *decisions[A]) lookupLocked(k key) *decision[A] {
	if p, ok := d.pins[k]; ok {
		return p.decision
	}
	if known, ok := d.granted.get(k); ok {
		return known
	}
	known, _ := d.refused.get(k)
	return known
}

// startLocked asks a question; nil if too many wait already.
func (d *decisions[A]) startLocked(q question[A], have *decision[A]) *flight[A] {
	l := &d.others
	if have != nil && have.granted {
		l = &d.renewals
	}
	if l.full(q.size) {
		return nil
	}
	l.count++
	l.bytes += q.size
	f := &flight[A]{done: make(chan struct{})}
	d.flights[q.key] = f
	go d.fly(q, f, l, have)
	return f
}

// fly asks a question and remembers the answer. It ends within reviewTimeout.
func (d *decisions[A]) fly(q question[A], f *flight[A], l *lane, have *decision[A]) {
	defer close(f.done)
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	var answer A
	var granted bool
	err := errBusy
	select {
	case l.places <- struct{}{}:
		if ctx.Err() == nil { // select picks at random
			answer, granted, err = q.ask(ctx)
		}
		<-l.places
	case <-ctx.Done():
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.flights, q.key)
	l.count--
	l.bytes -= q.size
	d.review.count(now, err)
	var failed *failure
	switch {
	case err == nil:
		f.decision = newDecision(d.times, now, answer, granted)
		d.rememberLocked(q.key, f.decision)
	case errors.As(err, &failed) && !failed.away():
		f.err = err
		d.rememberLocked(q.key, nil)
	case have.holds(now):
		f.decision = have.holding(now)
		d.rememberLocked(q.key, f.decision)
		d.review.Held++
	default:
		f.err = err
	}
}

// newDecision is an answer that counts from now on.
func newDecision[A any](t times, now time.Time, answer A, granted bool) *decision[A] {
	expires, ends := now.Add(spread(t.refusal)), now
	if granted {
		expires = now.Add(spread(t.renewal))
		ends = expires.Add(t.hold)
	}
	return &decision[A]{answer: answer, granted: granted, expires: expires, ends: ends}
}

// rememberLocked replaces the decision on a question; nil forgets it.
func (d *decisions[A]) rememberLocked(k key, made *decision[A]) {
	if p, ok := d.pins[k]; ok {
		p.decision = made
		return
	}
	d.granted.remove(k)
	d.refused.remove(k)
	switch {
	case made == nil:
	case made.granted:
		d.granted.put(k, made)
	default:
		d.refused.put(k, made)
	}
}

// pin keeps a decision for a watch that has just begun, until unpin.
func (d *decisions[A]) pin(k key, begun *decision[A]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.pins[k]; ok {
		p.watchers++
		return
	}
	if known := d.lookupLocked(k); known != nil {
		begun = known
	}
	d.rememberLocked(k, nil)
	d.pins[k] = &pin[A]{watchers: 1, decision: begun}
}

func (d *decisions[A]) unpin(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pins[k]
	if p.watchers--; p.watchers == 0 {
		delete(d.pins, k)
		d.rememberLocked(k, p.decision)
	}
}

func (d *decisions[A]) status() Review {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.review
	r.Granted, r.Refused = d.granted.len()+len(d.pins), d.refused.len()
	r.Bytes = d.granted.size + d.refused.size
	if r.Err != nil {
		r.Class = reflector.Classify(r.Err)
	}
	return r
}

// count takes in how a question has ended.
func (r *Review) count(now time.Time, err error) {
	var failed *failure
	switch {
	case err == nil:
		r.Asked++
		r.Err, r.Since = nil, time.Time{}
		return
	case errors.As(err, &failed):
		r.Asked++
		if failed.ofTheQuestion() {
			break
		}
		if r.Err == nil {
			r.Since = now
		}
		r.Err = err
	}
	r.Failed++
}
