package heap

import (
	"reflect"
	"sync"
)

// Meter estimates the memory of objects from some of them, which it reads as they come: the first
// ones, and then runs of neighbours, which share memory. So it reads no object that a program may
// have by then. It is safe for concurrent use. Its zero value is ready, and takes up to 512 KB
// until [Meter.Out].
type Meter struct {
	mu    sync.Mutex
	walk  walk
	early uint64 // bytes of the first objects
	count int    // of objects that came, and count
	late  int    // of those, behind the first ones
	read  int    // of the late ones, those that were read
	left  int    // objects of the present run
	out   bool
	full  bool // nothing more is read
}

// Reading is bounded by the visits to blocks of memory: so many at first, and for each object.
const (
	first = 1 << 14
	each  = 4
	run   = 1 << 7 // objects
)

// Add takes an object, which is a pointer.
//
// Until Out is called, no program has any of the objects. Later it may have parts of obj that other
// objects share. So Add reads on only while the addresses of all earlier blocks are known.
func (m *Meter) Add(obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := reflect.ValueOf(obj)
	if m.full || m.out && m.walk.seen.has(object.Pointer()) {
		return
	}
	m.count++
	if m.late > 0 || m.walk.visits >= first {
		if m.late++; !m.chosen() {
			return
		}
		m.read++
	}
	m.walk.value(object)
	if m.late == 0 {
		m.early = m.walk.bytes
	}
	m.settle()
}

// chosen reports whether a late object is read.
func (m *Meter) chosen() bool {
	if m.left == 0 && m.walk.visits <= first+each*m.late {
		m.left = run
	}
	if m.left == 0 {
		return false
	}
	m.left--
	return true
}

// Out says that programs have the objects that have come.
func (m *Meter) Out() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out = true
	m.settle()
}

// settle lets the addresses go, once they are of no use.
func (m *Meter) settle() {
	if m.out && (m.walk.visits >= first || m.walk.seen.forgot) {
		m.full = true
		m.walk.seen = addresses{}
	}
}

// Bytes estimates the memory of that many objects.
func (m *Meter) Bytes(objects int) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == 0 {
		return 0
	}
	all := float64(m.early)
	if m.read > 0 {
		all += float64(m.walk.bytes-m.early) * float64(m.late) / float64(m.read)
	}
	return uint64(all * float64(objects) / float64(m.count))
}

// addresses is a set of addresses. If there are too many, it begins anew and has forgotten some.
type addresses struct {
	slots  []uintptr // a power of two, at most half full
	count  int
	forgot bool
}

const mostAddresses = 1 << 15

// add reports whether the address is new.
func (a *addresses) add(address uintptr) bool {
	if 2*a.count >= len(a.slots) {
		a.grow()
	}
	at := a.find(address)
	if *at == address {
		return false
	}
	*at = address
	a.count++
	return true
}

func (a *addresses) has(address uintptr) bool {
	return a.count > 0 && *a.find(address) == address
}

func (a *addresses) find(address uintptr) *uintptr {
	for i := mixed(address); ; i++ {
		if at := &a.slots[i%uint64(len(a.slots))]; *at == address || *at == 0 {
			return at
		}
	}
}

func (a *addresses) grow() {
	if a.count >= mostAddresses {
		clear(a.slots)
		a.count, a.forgot = 0, true
		return
	}
	before := a.slots
	a.slots = make([]uintptr, max(64, 2*len(before)))
	for _, address := range before {
		if address != 0 {
			*a.find(address) = address
		}
	}
}

// mixed is SplitMix64 of an address: each of its bits depends on all of the address.
func mixed(address uintptr) uint64 {
	x := uint64(address)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
