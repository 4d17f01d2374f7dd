package lookup

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/store"
)

// table has the pods of each value by its text, of all kinds. It is immutable, and so are the lists
// in it. The first entry of a kind counts.
type table = trie.Map[string, []entry]

// entry is a record under one of its values.
type entry struct {
	*record
	kind valueKind
	lost time.Time // when the value ended to be true; zero: it is true
}

// firstOf is the entry of a kind that counts; nil if there is none.
func firstOf(found []entry, kind valueKind) *entry {
	for i := range found {
		if found[i].kind == kind {
			return &found[i]
		}
	}
	return nil
}

// record is one pod, from its first state until its last value is forgotten. A change that leaves
// its values as they are is a change of now alone, and none of the tables.
type record struct {
	key string // namespace/name
	now atomic.Pointer[Pod]

	// The goroutine that changes the table has these.
	values []value // that are true; never modified
	age    age
	owners []types.UID // its controllers, if the API server is asked for them
}

// loss is a time at which values of a record ended to be true.
type loss struct {
	*record
	at     time.Time
	values []value // never modified
}

// edit is a change of the table on its way.
type edit struct {
	table   table
	writer  trie.Writer[string, []entry]
	of      *Lookup
	at      time.Time
	written bool                // there is something new in the table
	lost    bool                // there is a new loss
	touched map[types.UID]owned // controllers that pods have got or lost; nil without owners
}

func (l *Lookup) edit() *edit {
	return &edit{table: *l.now.Load(), writer: trie.Writer[string, []entry]{Hash: trie.HashString, Owner: trie.NewOwner()}, of: l, at: time.Now()}
}

// change takes in the pod of a name; without a Pod, no source has one any more.
func (e *edit) change(key string, pod sources.MergedPod) {
	all, _ := e.table.Get(trie.HashString(key), key)
	next := &Pod{MergedPod: pod}
	var now, same *record // of the name, and of the pod
	for _, one := range all {
		if one.kind == nameValue && one.lost.IsZero() {
			now = one.record
		}
		if one.kind == nameValue && pod.Pod != nil && same == nil && one.now.Load().Is(pod) {
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
	values, age := next.appendValues(e.of.scratch[:0], r.key), next.age()
	e.of.scratch = values[:0]
	if age == r.age && slices.Equal(values, r.values) {
		return
	}
	var lost []value
	for _, v := range r.values {
		if !slices.Contains(values, v) {
			lost = append(lost, v)
		}
	}
	r.values, r.age = slices.Clone(values), age
	for _, v := range values {
		e.place(v, entry{record: r, kind: v.kind}, held)
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
		e.control(r, &Pod{})
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
		e.place(v, entry{r, v.kind, e.at}, as)
	}
	if e.of.keep > 0 {
		e.of.lost, e.lost = append(e.of.lost, loss{r, e.at, lost}), true
	}
}

// forget forgets a loss, and with its last one the record.
func (e *edit) forget(one loss) {
	for _, v := range one.values {
		e.place(v, entry{one.record, v.kind, one.at}, expired)
	}
	if one.now.Load().Ended.Equal(one.at) {
		e.control(one.record, &Pod{})
	}
}

// control notes the controllers of a record: those of its pod, and none once that is forgotten.
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
		if slices.Contains(all, uid) {
			continue
		}
		if e.of.uses[uid]--; e.of.uses[uid] == 0 {
			delete(e.of.uses, uid)
		}
		e.touch(owned{uid: uid})
	}
	r.owners = all
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
	hash := trie.HashString(v.text)
	found, _ := e.table.Get(hash, v.text)
	if next := listed(found, one, as); len(next) > 0 {
		e.table, _, _ = e.writer.Set(e.table, hash, v.text, next)
	} else if found != nil {
		e.table, _, _ = e.writer.Delete(e.table, hash, v.text)
	}
}

// listed is a list with one entry changed: before all that it takes precedence over, or not there.
func listed(found []entry, one entry, as placing) []entry {
	next := make([]entry, 0, len(found)+1)
	for _, other := range found {
		switch {
		case other.record != one.record || other.kind != one.kind:
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

// precedes orders the entries of one value: a pod that runs, one that is being stopped, one that is
// finished, and those that lost the value, the last one first. The address of a pod that stops may
// be another one's already. Of two alike, the one that started later has it now.
func (one entry) precedes(other entry) bool {
	if one.lost.IsZero() && other.lost.IsZero() {
		return one.age.compare(other.age) < 0
	}
	return one.lost.IsZero() || !other.lost.IsZero() && one.lost.After(other.lost)
}

// stage is how far the life of a pod is.
type stage int

const (
	running  stage = iota
	stopping       // it has a deletionTimestamp
	finished       // it will never run again
)

// age is what decides between two pods that have one value.
type age struct {
	stage   stage
	started int64 // in seconds since 1970
}

func (a age) compare(b age) int {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(b.started, a.started))
}

// value is something by which a pod is found.
type value struct {
	kind valueKind
	text string // of an address or cgroup its 16 bytes
}

type valueKind byte

// The numbers are those of checkpoints.
const (
	nameValue valueKind = iota // namespace/name
	uidValue
	containerValue
	addressValue
	cgroupValue
)

// appendValues appends all values of a pod with this key, namespace/name.
func (p *Pod) appendValues(values []value, key string) []value {
	values = append(values, value{nameValue, key})
	several := p.Live != nil || p.Mirror != nil // states, which have values in common
	add := func(kind valueKind, text string) {
		if v := (value{kind, text}); text != "" && !(several && slices.Contains(values, v)) {
			values = append(values, v)
		}
	}
	for uid := range p.UIDs() {
		add(uidValue, string(uid))
		if group, ok := cgroupOfUID(string(uid)); ok {
			add(cgroupValue, string(group[:]))
		}
	}
	for pod := range p.states {
		for i := range pod.Status.PodIPs {
			if address, err := netip.ParseAddr(pod.Status.PodIPs[i].IP); err == nil && !pod.Spec.HostNetwork {
				bytes := address.As16() // in which ::ffff:192.0.2.1 is 192.0.2.1
				add(addressValue, string(bytes[:]))
			}
		}
		for c := range live.Containers(&pod.Status) {
			add(containerValue, withoutRuntime(c.ContainerID))
			if last := c.LastTerminationState.Terminated; last != nil {
				add(containerValue, withoutRuntime(last.ContainerID))
			}
		}
	}
	return values
}

// states yields the pod as each of its sources has it.
func (p *Pod) states(yield func(*corev1.Pod) bool) {
	for _, pod := range []*corev1.Pod{p.Pod, p.Live, p.Mirror} {
		if pod != nil && !yield(pod) {
			return
		}
	}
}

// age is that of the newest states of the pod. A pod that the kubelet has not started yet counts as
// started when it was created.
func (p *Pod) age() (a age) {
	status := p.Status()
	a.started = p.Pod.CreationTimestamp.Unix()
	if status.StartTime != nil {
		a.started = status.StartTime.Unix()
	}
	for pod := range p.states {
		if pod.DeletionTimestamp != nil {
			a.stage = stopping
		}
	}
	if live.Final(&status) {
		a.stage = finished
	}
	return a
}

// withoutRuntime is the ID of a container without the name of its runtime.
func withoutRuntime(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}

// lastCgroup finds the last UID in a path, after the word pod, and the path above it.
func lastCgroup(path string) (group [16]byte, above string, ok bool) {
	for at := strings.LastIndex(path, "pod"); at >= 0; at = strings.LastIndex(path[:at], "pod") {
		name := path[at+len("pod"):]
		if end := strings.IndexAny(name, "/."); end >= 0 {
			name = name[:end]
		}
		if group, ok = cgroupOfUID(name); ok {
			return group, path[:at], true
		}
	}
	return group, "", false
}

// cgroupOfUID is a UID as it stands in the names of cgroups: of 32 hexadecimal digits. That of a
// static pod has no dashes, and the systemd driver writes underscores for them.
func cgroupOfUID(uid string) (group [16]byte, ok bool) {
	var digits [2 * len(group)]byte
	n := 0
	for i := range len(uid) {
		switch c := uid[i]; {
		case c == '-' || c == '_':
			continue
		case n == len(digits):
			return group, false
		default:
			digits[n] = c
			n++
		}
	}
	_, err := hex.Decode(group[:], digits[:])
	return group, err == nil && n == len(digits)
}
