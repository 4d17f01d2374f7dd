package reviews

import (
	"context"
	"sync"
	"time"
)

// watches are the open watches. Those of one client that watch the same are a group, which is
// judged as a new request would be, whenever its decisions expire.
type watches struct {
	mu     sync.Mutex // guards the next fields, and those of groups and leases
	groups map[key]*group
	count  int
}

// group is watches with the same credential and attributes. A token is kept in plain for as long:
// the upstream must be asked for it again.
type group struct {
	access
	key    key
	leases map[*lease]struct{}
	timer  *time.Timer
}

// lease is the right of one watch. It is none of its group's any more once it has ended.
type lease struct {
	group *group
	end   context.CancelFunc
}

func (w *watches) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// begin has end called when the right of a watch ends.
func (r *Reviews) begin(a access, end context.CancelFunc) *lease {
	k := r.keys.of(a.appendTo(nil))
	w := &r.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	g, ok := w.groups[k]
	if !ok {
		g = &group{access: a, key: k, leases: map[*lease]struct{}{}}
		w.groups[k] = g
		r.pin(a.judgement)
		g.timer = time.AfterFunc(time.Until(a.judgement.until), func() { r.renew(g) })
	}
	l := &lease{group: g, end: end}
	g.leases[l] = struct{}{}
	w.count++
	return l
}

// appendTo encodes the credential and the attributes, for the key of a group.
func (a access) appendTo(b []byte) []byte {
	// The attributes are part of the question that the right's key stands for.
	b = a.credential.appendTo(b)
	return append(b, a.judgement.rightKey[:]...)
}

// renew judges a group again. Its watches end if it is no longer allowed.
func (r *Reviews) renew(g *group) {
	j, err := r.judge(context.Background(), g.credential, g.attributes)
	for _, end := range r.watches.conclude(r, g, j, err) {
		end()
	}
}

// conclude takes in a judgement of a group, and returns the functions to call if it is not allowed.
func (w *watches) conclude(r *Reviews, g *group, j judgement, err error) (ends []context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(g.leases) == 0: // the last watch has ended meanwhile
	case err == nil:
		r.pin(j)
		r.unpin(g.judgement)
		g.judgement = j
		g.timer.Reset(time.Until(j.until))
	default:
		for l := range g.leases {
			ends = append(ends, l.end)
		}
		w.count -= len(g.leases)
		clear(g.leases)
		w.removeLocked(r, g)
	}
	return ends
}

func (w *watches) removeLocked(r *Reviews, g *group) {
	g.timer.Stop()
	delete(w.groups, g.key)
	r.unpin(g.judgement)
}

func (r *Reviews) pin(j judgement) {
	if j.token != nil {
		r.tokens.pin(j.tokenKey, j.token)
	}
	r.rights.pin(j.rightKey, j.right)
}

func (r *Reviews) unpin(j judgement) {
	if j.token != nil {
		r.tokens.unpin(j.tokenKey)
	}
	r.rights.unpin(j.rightKey)
}

// leave is called when a watch has ended, be it by its right.
func (r *Reviews) leave(l *lease) {
	w, g := &r.watches, l.group
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, present := g.leases[l]; !present {
		return
	}
	delete(g.leases, l)
	w.count--
	if len(g.leases) == 0 {
		w.removeLocked(r, g)
	}
}
