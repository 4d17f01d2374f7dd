package lookup

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// tables are immutable, and so are the lists in them. The first entry of a list counts.
type tables struct {
	names      trie.Map[string, []entry] // by namespace/name
	uids       trie.Map[string, []entry]
	containers trie.Map[string, []entry]
	addresses  trie.Map[netip.Addr, []entry]
	cgroups    trie.Map[cgroup, []entry]
}

// entry is a record under one of its values.
type entry struct {
	*record
	lost time.Time // when the value ended to be true; zero: it is true
}

// record is one pod, from its first state until its last value is forgotten. A change that leaves
// its values as they are is a change of now alone, and none of the tables.
type record struct {
	key string // namespace/name
	now atomic.Pointer[Pod]

	// The goroutine that changes the tables has these.
	values   []value // that are true; never modified
	finished bool
	owners   []types.UID // its controllers, if the API server is asked for them
}

// loss is a time at which values of a record ended to be true.
type loss struct {
	*record
	at     time.Time
	values []value // never modified
}

// textKey is the hash and the key of a text.
func textKey(text string) (hash uint64, key string) { return trie.HashString(text), text }

// edit is a change of the tables on its way.
type edit struct {
	tables
	of      *Lookup
	owner   uint64
	at      time.Time
	written bool                // there is something new in the tables
	lost    bool                // there is a new loss
	touched map[types.UID]owned // controllers that pods have got or lost; nil without owners
}

func (l *Lookup) edit() *edit {
	return &edit{tables: *l.now.Load(), of: l, owner: trie.NewOwner(), at: time.Now()}
}

// change takes in the pod of a name; without a Pod, no source has one any more.
func (e *edit) change(key string, pod sources.MergedPod) {
	all, _ := e.names.Get(textKey(key))
	next := &Pod{MergedPod: pod}
	var now, same *record // of the name, and of the pod
	for _, one := range all {
		if one.lost.IsZero() {
			now = one.record
		}
		if pod.Pod != nil && same == nil && one.now.Load().shares(next) {
			same = one.record
		}
	}
	if now != nil && now != same {
		e.end(now)
	}
	if pod.Pod == nil {
		return
	}
	if same == nil {
		same = &record{key: key}
	}
	e.set(same, next)
}

// set makes next the state of a record. Values that it does not have any more are a loss.
func (e *edit) set(r *record, next *Pod) {
	r.now.Store(next)
	e.control(r, next)
	values, finished := next.appendValues(e.of.scratch[:0], r.key), next.finished()
	e.of.scratch = values[:0]
	if finished == r.finished && slices.Equal(values, r.values) {
		return
	}
	var lost []value
	for _, v := range r.values {
		if !slices.Contains(values, v) {
			lost = append(lost, v)
		}
	}
	r.values, r.finished = slices.Clone(values), finished
	for _, v := range values {
		e.place(v, entry{record: r}, held)
	}
	e.lose(r, lost)
}

// end keeps the record of a pod that no source has any more, for the time of KeepEnded.
func (e *edit) end(r *record) {
	lost := r.values
	r.values = nil
	if e.of.keep > 0 {
		r.now.Store(&Pod{MergedPod: r.now.Load().MergedPod, Ended: e.at})
	} else {
		e.release(r)
	}
	e.lose(r, lost)
}

// lose marks values as past, or forgets them if nothing is kept.
func (e *edit) lose(r *record, lost []value) {
	if len(lost) == 0 {
		return
	}
	as := held
	if e.of.keep == 0 {
		as = forgotten
	}
	for _, v := range lost {
		e.place(v, entry{r, e.at}, as)
	}
	if e.of.keep > 0 {
		e.of.lost, e.lost = append(e.of.lost, loss{r, e.at, lost}), true
	}
}

// forget forgets a loss, and with its last one the record.
func (e *edit) forget(one loss) {
	for _, v := range one.values {
		e.place(v, entry{one.record, one.at}, expired)
	}
	if one.now.Load().Ended.Equal(one.at) {
		e.release(one.record)
	}
}

// control notes the controllers of a record.
func (e *edit) control(r *record, next *Pod) {
	if e.of.owners == nil {
		return
	}
	var all []types.UID
	for pod := range next.states {
		object, ok := ownedBy(pod)
		if !ok || slices.Contains(all, object.uid) {
			continue
		}
		all = append(all, object.uid)
		if !slices.Contains(r.owners, object.uid) {
			e.of.uses[object.uid]++
		}
		e.touch(object)
	}
	for _, uid := range r.owners {
		if !slices.Contains(all, uid) {
			e.unuse(uid)
		}
	}
	r.owners = all
}

// release gives up the controllers of a record.
func (e *edit) release(r *record) {
	for _, uid := range r.owners {
		e.unuse(uid)
	}
	r.owners = nil
}

func (e *edit) unuse(uid types.UID) {
	if e.of.uses[uid]--; e.of.uses[uid] == 0 {
		delete(e.of.uses, uid)
	}
	e.touch(owned{uid: uid})
}

func (e *edit) touch(object owned) {
	if e.touched == nil {
		e.touched = map[types.UID]owned{}
	}
	e.touched[object.uid] = e.touched[object.uid].with(object)
}

// with joins two sights of one object: the oldest version of its pods, and the newest pod.
func (o owned) with(other owned) owned {
	switch {
	case o.name == "":
		return other
	case other.name == "":
		return o
	}
	if o.version == "" || store.Version(other.version).Before(store.Version(o.version)) {
		o.version = other.version
	}
	if other.newest.After(o.newest) {
		o.newest = other.newest
	}
	return o
}

// placing is a change of an entry.
type placing int

const (
	held placing = iota
	forgotten
	expired // forgotten, unless the value has been true since
)

// place changes the list under one value of a record.
func (e *edit) place(v value, one entry, as placing) {
	e.written = true
	texts := trie.Writer[string, []entry]{Hash: trie.HashString, Owner: e.owner}
	switch v.kind {
	case nameValue:
		e.names = placed(texts, e.names, v.text, one, as)
	case containerValue:
		e.containers = placed(texts, e.containers, v.text, one, as)
	case addressValue:
		e.addresses = placed(trie.Writer[netip.Addr, []entry]{Hash: trie.Hash[netip.Addr], Owner: e.owner}, e.addresses, v.address, one, as)
	case uidValue:
		e.uids = placed(texts, e.uids, v.text, one, as)
		if group, ok := cgroupOfUID(v.text); ok {
			e.cgroups = placed(trie.Writer[cgroup, []entry]{Hash: trie.Hash[cgroup], Owner: e.owner}, e.cgroups, group, one, as)
		}
	}
}

func placed[K comparable](w trie.Writer[K, []entry], in trie.Map[K, []entry], key K, one entry, as placing) trie.Map[K, []entry] {
	hash := w.Hash(key)
	found, _ := in.Get(hash, key)
	next := listed(found, one, as)
	if len(next) > 0 {
		in, _, _ = w.Set(in, hash, key, next)
	} else if found != nil {
		in, _, _ = w.Delete(in, hash, key)
	}
	return in
}

// listed is a list with one entry changed: before all that it takes precedence over, or not there.
func listed(found []entry, one entry, as placing) []entry {
	next := make([]entry, 0, len(found)+1)
	for _, other := range found {
		switch {
		case other.record != one.record:
			next = append(next, other)
		case as == expired && !other.lost.Equal(one.lost):
			return found
		}
	}
	if as != held {
		return next
	}
	at := slices.IndexFunc(next, func(other entry) bool { return !other.precedes(one) })
	if at < 0 {
		at = len(next)
	}
	return slices.Insert(next, at, one)
}

// precedes orders the entries of one value: a pod that runs, one that is finished, and those that
// lost the value, the last one first. The address of a finished pod may be another one's already.
func (one entry) precedes(other entry) bool {
	if a, b := one.rank(), other.rank(); a != b || a < past {
		return a < b
	}
	return one.lost.After(other.lost)
}

const past = 2

func (one entry) rank() int {
	switch {
	case !one.lost.IsZero():
		return past
	case one.finished:
		return 1
	}
	return 0
}
