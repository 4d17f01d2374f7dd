package sharing

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"reflect"
	"sync"
	"sync/atomic"
)

// site is one field of a type, with the values that were decoded there in this generation and in
// the last one. A look-up takes no lock. The lock is for keeping a value.
type site struct {
	typ        reflect.Type
	number     uint64
	mu         sync.Mutex
	young, old table
}

// lazySite is a site that is made when it is first needed: most fields of most types are never
// seen.
type lazySite struct{ made atomic.Pointer[site] }

func (s *lazySite) of(k *common, typ reflect.Type) *site {
	if made := s.made.Load(); made != nil {
		return made
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.made.Load() == nil {
		s.made.Store(k.newSite(typ))
	}
	return s.made.Load()
}

// newSite is called with the kind's lock held.
func (k *common) newSite(typ reflect.Type) *site {
	s := &site{typ: typ, number: uint64(len(k.sites)) * 0x9e3779b97f4a7c15}
	k.sites = append(k.sites, s)
	return s
}

// find assigns to dst the value that was decoded from equal bytes. A value may be known, but in
// doubt, and is not found then.
func (d *decoder) find(s *site, h *habit, k key, size int, dst ref) (found, known bool) {
	doubts := d.doubts.Load()
	r := s.young.room.Load()
	i := r.find(k)
	old := i < 0
	if old {
		r = s.old.room.Load()
		i = r.find(k)
	}
	known = i >= 0
	if found = known && r.checked[i].Load() == doubts; found {
		dst.set(s.typ, r.first.field(uintptr(i)*s.typ.Size()))
		if old { // it is used, and lives on
			s.keep(d.common, k, size, dst.value(s.typ), doubts)
		}
		d.counts.hits++
		d.counts.shared += uint64(size)
	}
	d.counts.lookups++
	h.looked(known, d.objects)
	return found, known
}

// keep remembers a decoded value. Slices lose their spare capacity: two objects must not grow into
// one array.
func (d *decoder) keep(s *site, h *habit, k key, size int, value reflect.Value) {
	trim(value)
	if h.skip > 0 {
		return // judged by the very look-up that did not find it
	}
	if d.since != d.doubts.Load() {
		return // it may have parts that are in doubt by now
	}
	s.keep(d.common, k, size, value, d.since)
}

// keep adds a value, or takes it into this generation. It does not wait for another decoder that
// keeps a value here: then the object has its own copy, and a later one is kept. If the site has
// one, value becomes that, so that both stay shared. A value in doubt stays only if it is equal. A
// published value is never written: another decoder may be reading it.
func (s *site) keep(in *common, k key, size int, value reflect.Value, checked uint32) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	r := s.young.room.Load()
	i := r.find(k)
	young := i >= 0
	if !young {
		r = s.old.room.Load()
		i = r.find(k)
	}
	whole := false
	if i >= 0 {
		has := r.values.Index(i)
		whole = r.checked[i].Load() == checked || reflect.DeepEqual(has.Interface(), value.Interface())
		if whole {
			value.Set(has)
		}
	}
	switch {
	case young && whole:
		r.checked[i].Store(checked)
	case young:
		s.young.put(s.typ, k, value, checked)
	default:
		if i >= 0 {
			s.old.entries--
			s.old.bytes -= size
			in.forgot(1, size)
		}
		s.young.put(s.typ, k, value, checked)
		s.young.entries++
		s.young.bytes += size
		in.kept(size)
	}
}

// age begins a new generation. It takes over the space of the one that it replaces if no other
// goroutine can be reading there.
func (s *site) age(in *common, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.forgot(s.old.entries, s.old.bytes)
	space := s.old.room.Load()
	if !alone {
		space = nil
	}
	s.old.become(&s.young, s.young.room.Load())
	s.young.become(&table{}, space.emptied())
}

// forget gives up all values. A decoder that is reading one keeps it.
func (s *site) forget(in *common) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.forgot(s.old.entries+s.young.entries, s.old.bytes+s.young.bytes)
	s.old.become(&table{}, nil)
	s.young.become(&table{}, nil)
}

// trim takes the spare capacity of a slice.
func trim(value reflect.Value) {
	if value.Kind() == reflect.Slice && value.Cap() > value.Len() {
		value.SetCap(value.Len())
	}
}

// table holds values of one type by the bytes that they were decoded from. Any number of goroutines
// may find values while one adds some.
type table struct {
	room           atomic.Pointer[room]
	entries, bytes int // under the site's lock
}

func (t *table) become(other *table, r *room) {
	t.room.Store(r)
	t.entries, t.bytes = other.entries, other.bytes
}

// put adds a value, or another one for its key.
func (t *table) put(typ reflect.Type, k key, value reflect.Value, checked uint32) {
	r := t.room.Load()
	if r == nil || r.used == len(r.keys) {
		r = r.grown(typ)
		t.room.Store(r)
	}
	r.put(k, value, checked)
}

// room is the space of a table: a hash table with open addressing, with all values in one slice.
// An entry takes some 30 bytes beside its value, and only the values have pointers. An entry is
// written before its slot, and not changed afterwards. A room that is full is copied.
type room struct {
	slots  []atomic.Uint32 // 1 + the index of an entry; their number is a power of two
	keys   []key
	values reflect.Value
	first  ref // of values
	// checked is, per value, the number of doubts at which it was known to agree with its bytes.
	checked []atomic.Uint32
	used    int // entries; under the site's lock
}

// seed places keys. A tenant chooses the text that is a short key, but must not be able to choose
// its slot.
var seed = maphash.MakeSeed()

// find returns the index of a key's entry; below zero if there is none.
func (r *room) find(k key) int {
	if r == nil {
		return -1
	}
	mask := uint64(len(r.slots) - 1)
	for at := maphash.Bytes(seed, k[:]); ; at++ {
		if n := int(r.slots[at&mask].Load()); n == 0 || r.keys[n-1] == k {
			return n - 1
		}
	}
}

// put adds an entry, or lets a key have another one.
func (r *room) put(k key, value reflect.Value, checked uint32) {
	n := r.used
	r.used++
	r.keys[n] = k
	r.values.Index(n).Set(value)
	r.checked[n].Store(checked)
	mask := uint64(len(r.slots) - 1)
	for at := maphash.Bytes(seed, k[:]); ; at++ {
		slot := &r.slots[at&mask]
		if n := slot.Load(); n == 0 || r.keys[n-1] == k {
			slot.Store(uint32(r.used))
			return
		}
	}
}

// grown returns a larger room with the entries of r, which may be nil.
func (r *room) grown(typ reflect.Type) *room {
	used, most := 0, minRoom
	if r != nil {
		used = r.used
		most = max(used+used/2, min(2*used, doubledRoom))
	}
	slots := 2 * minRoom
	for slots <= most+most/3 { // one is always empty
		slots *= 2
	}
	out := &room{
		slots: make([]atomic.Uint32, slots), keys: make([]key, most),
		values: reflect.MakeSlice(reflect.SliceOf(typ), most, most), checked: make([]atomic.Uint32, most),
	}
	out.first = refTo(out.values)
	for i := range used {
		out.put(r.keys[i], r.values.Index(i), r.checked[i].Load())
	}
	return out
}

// emptied is the room without its entries; nil if most of its space was not used.
func (r *room) emptied() *room {
	if r == nil || r.used < len(r.keys)/4 {
		return nil
	}
	clear(r.slots)
	r.values.Clear()
	r.used = 0
	return r
}

// filter knows which keys were met lately. A place that finds few of its values lets the memo have
// a value only when it comes a second time, and a value that never repeats is never kept. A key
// that is forgotten too early, or is taken for another, costs a copy or an entry.
type filter struct {
	table atomic.Pointer[[]atomic.Uint32]
}

// grow fits the filter to a collection of that many bytes. Calls must not overlap.
func (f *filter) grow(size int) {
	table, n := f.table.Load(), minFilter
	if size >= fewBytes {
		n = someFilter
	}
	for n < maxFilter && n < size/filterPart {
		n *= 2
	}
	if table == nil || len(*table) < n {
		made := make([]atomic.Uint32, n)
		f.table.Store(&made)
	}
}

// again reports whether the key was met before in this field, and notes it.
func (f *filter) again(s *site, k key) bool {
	table := *f.table.Load()
	high, low := bits.Mul64(binary.LittleEndian.Uint64(k[:])^s.number, 0x9e3779b97f4a7c15)
	high, low = bits.Mul64(high^low^binary.LittleEndian.Uint64(k[8:]), 0xbf58476d1ce4e5b9)
	at, mark := &table[high%uint64(len(table))], uint32(low)|1
	return at.Swap(mark) == mark
}
