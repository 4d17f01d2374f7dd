package sharing

import (
	"reflect"

	"github.com/tributary-go/tributary/internal/wire"
)

// decoder is the state of one goroutine that decodes: the previous object, the habits of its
// places, and room to work in. A goroutine that decodes alone always gets the same one.
type decoder struct {
	*common
	last     int                     // the index among idle decoders
	since    uint32                  // the doubts after which before was decoded
	previous map[any]*previousObject // by plan
	far      map[*site]*habit
	roots    map[reflect.Type]*root
	nodes    []*node // of all roots

	recentBytes int // that the nodes keep
	recentMost  int
	changes     int
	objects     uint32 // that it has decoded
	notes       notes
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

// counts are added to the statistics after each object.
type counts struct{ bytes, same, shared, lookups, hits uint64 }

func newDecoder(k *common) *decoder {
	d := &decoder{
		common: k, since: k.doubts.Load(), sum: make([]byte, 0, len(Digest{})),
		previous: map[any]*previousObject{}, far: map[*site]*habit{}, roots: map[reflect.Type]*root{},
	}
	d.treeRef = reflect.ValueOf(&d.treeValue).Elem()
	return d
}

// same counts a part that is equal in the previous object, or in the last state.
func (d *decoder) same(size int) {
	d.counts.same++
	d.counts.shared += uint64(size)
}

// habit is how the look-ups in one place went lately. A place that finds too little rests for
// skip objects, and is tried again.
type habit struct {
	tries, hits, skip, pause int32
	since                    uint32 // the decoder's object with the first of these tries
	good                     bool   // most look-ups found a value lately
}

// wanted reports whether a look-up is worth its price.
func (h *habit) wanted() bool {
	if h.skip > 0 {
		h.skip--
		return false
	}
	return true
}

// same counts a part that is equal in the previous object. It speaks for the place like a look-up
// that finds: in another order of objects it would have been looked up.
func (h *habit) same(object uint32) {
	if h.skip == 0 {
		h.count(true, object)
	}
}

// looked counts a look-up for an object. Now and then it decides whether to go on, and how long to
// rest otherwise. The objects count as well: the elements of one long list, such as the images of a
// Node, repeat in the next one.
func (h *habit) looked(found bool, object uint32) {
	if h.count(found, object); h.tries >= trial && (object-h.since >= trialObjects || h.tries >= longTrial) {
		h.judge()
	}
}

func (h *habit) count(found bool, object uint32) {
	if h.tries == 0 {
		h.since = object
	}
	h.tries++
	if found {
		h.hits++
	}
}

func (h *habit) judge() {
	h.good = h.hits >= h.tries/2
	if h.hits >= h.tries/worth {
		h.pause = 0
	} else {
		h.pause = min(max(restShare*h.tries, 2*h.pause), lastRest)
		h.skip = h.pause
	}
	h.tries, h.hits = 0, 0
}
