package sharing

import (
	"errors"
	"reflect"

	"github.com/tributary-go/tributary/internal/wire"
)

// errForm: the input is not of the form that is taken apart. The plain decoder has the last word.
var errForm = errors.New("not of the form that is taken apart")

// decoder is the state of one goroutine that decodes: the previous object, the habits of its
// places, and room to work in. A goroutine that decodes alone always gets the same one.
type decoder struct {
	*Memo
	since    uint32                  // the doubts after which before was decoded
	previous map[any]*previousObject // by plan
	far      map[*site]*habit
	roots    map[reflect.Type]*root
	nodes    []*node // of all roots

	recentBytes int // that the nodes keep
	recentMost  int
	changes     int
	trace       trace
	compares    bool // elements that are not noted
	doc         wire.Document
	sum         []byte // of hash
	names       map[string]string

	nameBytes int
	naming    habit // judged whenever names are full

	root      treeSite
	treeSites int
	treeValue any           // that is looked up or kept
	treeRef   reflect.Value // of treeValue

	counts counts
}

// counts are what a decoder adds to the statistics after each object.
type counts struct{ same, shared, lookups, hits uint64 }

// maxIdle is the number of decoders that are kept. More are made while more goroutines decode at
// once.
const maxIdle = 4

// take begins an object.
func (m *Memo) take(size int) *decoder {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beginLocked(size)
	m.decoding++
	recentMost := min(max(minRecentBytes, m.sizeLocked()/recentPart), maxRecentBytes)
	last := len(m.idle) - 1
	if last < 0 {
		d := &decoder{Memo: m, since: m.doubts.Load(), recentMost: recentMost, previous: map[any]*previousObject{}, far: map[*site]*habit{}, roots: map[reflect.Type]*root{}, sum: make([]byte, 0, len(Digest{}))}
		d.treeRef = reflect.ValueOf(&d.treeValue).Elem()
		return d
	}
	d := m.idle[last]
	d.recentMost = recentMost
	m.idle = m.idle[:last]
	if doubts := m.doubts.Load(); d.since != doubts {
		d.since = doubts
		d.forgetPrevious()
	}
	return d
}

// giveBack ends an object. A decoder that panicked never comes back.
func (d *decoder) giveBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Same += d.counts.same
	d.stats.Shared += d.counts.shared
	d.stats.Lookups += d.counts.lookups
	d.stats.Hits += d.counts.hits
	d.counts = counts{}
	d.decoding--
	d.doc.End()
	if len(d.idle) < maxIdle {
		d.idle = append(d.idle, d)
	}
}

// same counts a part that is equal in the previous object.
func (d *decoder) same(size int) {
	d.counts.same++
	d.counts.shared += uint64(size)
}

// previousOf is the previous object of the type that a plan is for.
func (d *decoder) previousOf(plan any, t reflect.Type, slots int) *previousObject {
	b := d.previous[plan]
	if b == nil {
		b = newPrevious(t, slots)
		d.previous[plan] = b
	}
	return b
}

// whole is the habit of looking up a field in a place.
func (d *decoder) whole(at *place, in int, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.slots[in].whole
}

// each is the habit of looking up the element that is in a place.
func (d *decoder) each(at *place, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.element
}

// farHabit is the habit of a field whose places are not told apart.
func (d *decoder) farHabit(s *site) *habit {
	h := d.far[s]
	if h == nil {
		h = &habit{}
		d.far[s] = h
	}
	return h
}
