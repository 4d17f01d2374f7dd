package sources

import (
	"encoding/hex"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// maxEnded bounds the pods that KeepEnded keeps.
const maxEnded = 10_000

// KeepEnded keeps the last state of each pod for a time after the last source has dropped it, and
// at most 10,000 of them. [Sources.ByUID] and the other look-ups find such a pod, with
// [MergedPod].Ended set, unless a pod that has not ended is found first. Use it to attribute data
// that comes late, such as logs and flows. [Sources.Merged] and Updates leave these pods out. Zero,
// the default, keeps none.
func KeepEnded(d time.Duration) Option { return option(func(s *Sources) { s.lookup.keep = d }) }

// ByUID finds a pod by its UID. A static pod is found by each of its UIDs: that of its manifest, of
// the kubelet and of its mirror.
//
// The look-ups return nil if there is no such pod, and else a pod that is shared and read-only.
// They take no lock and allocate nothing, but for the first one of all, which makes their tables.
// They see a state of a source from the moment it is set, read from Updates or not.
func (s *Sources) ByUID(uid types.UID) *MergedPod {
	found, _ := s.tables().uids.Get(trie.HashString(string(uid)), string(uid))
	return s.lookup.first(found)
}

// ByContainerID finds the pod of a container by its ID in the status of the pod: that of a running
// container, or of one that was terminated last. The ID may have the name of its runtime, as in
// containerd://0123.
func (s *Sources) ByContainerID(id string) *MergedPod {
	id = withoutRuntime(id)
	found, _ := s.tables().containers.Get(trie.HashString(id), id)
	return s.lookup.first(found)
}

// ByIP finds the pod that has an IP address of its own. Pods on the network of the node have none.
func (s *Sources) ByIP(address netip.Addr) *MergedPod {
	address = address.Unmap()
	found, _ := s.tables().addresses.Get(trie.Hash(address), address)
	return s.lookup.first(found)
}

// ByCgroup finds the pod of a cgroup by its path, as in /proc/PID/cgroup: that of the pod, or any
// path below it, of the systemd driver or of cgroupfs.
func (s *Sources) ByCgroup(path string) *MergedPod {
	group, ok := cgroupOf(path)
	if !ok {
		return nil
	}
	found, _ := s.tables().cgroups.Get(trie.Hash(group), group)
	return s.lookup.first(found)
}

// lookup finds merged pods by their values.
type lookup struct {
	keep   time.Duration
	owners *owners                // nil: they are not asked for
	now    atomic.Pointer[tables] // nil before somebody needs them

	mu     sync.Mutex // guards what follows
	states map[*feed]Pods
	ended  []*MergedPod // by the time of their end
}

// tables are immutable, and so are the lists in them. The first pod of a list counts.
type tables struct {
	names      trie.Map[string, *MergedPod]
	uids       trie.Map[string, []*MergedPod]
	containers trie.Map[string, []*MergedPod]
	addresses  trie.Map[netip.Addr, []*MergedPod]
	cgroups    trie.Map[cgroup, []*MergedPod]
	owned      trie.Map[string, []*MergedPod] // by the UID of their controller
}

func newLookup() *lookup { return &lookup{states: map[*feed]Pods{}} }

// tables are the present ones. Until the first look-up there are none, and states cost nothing.
func (s *Sources) tables() *tables {
	if now := s.lookup.now.Load(); now != nil {
		return now
	}
	return s.lookup.build(s.list)
}

// build makes the tables of all states. Within the lock list has every feed that has a state.
func (l *lookup) build(list func() []*feed) *tables {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now.Load(); now != nil {
		return now // made by another look-up
	}
	next := &edit{owner: trie.NewOwner()}
	feeds := list()
	for _, state := range l.states {
		for key := range state.All() {
			if _, joined := next.names.Get(trie.HashString(key), key); !joined {
				l.joinLocked(next, feeds, key)
			}
		}
	}
	l.now.Store(&next.tables)
	return &next.tables
}

// idle reports whether nobody needs tables yet.
func (l *lookup) idle() bool { return l.now.Load() == nil && l.keep <= 0 && l.owners == nil }

// first is the pod that counts, unless it ended too long ago.
func (l *lookup) first(found []*MergedPod) *MergedPod {
	if len(found) == 0 || !found[0].Ended.IsZero() && time.Since(found[0].Ended) > l.keep {
		return nil
	}
	return found[0]
}

// set makes now the state of a feed. feeds are all of them, in the order of the inputs. The cost is
// that of the pods that changed.
func (l *lookup) set(feeds []*feed, f *feed, now Pods) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.states[f]
	l.states[f] = now
	if now.Len() == 0 {
		delete(l.states, f)
	}
	if l.idle() {
		return
	}
	next := &edit{owner: trie.NewOwner()}
	if tables := l.now.Load(); tables != nil {
		next.tables = *tables
	}
	if l.owners != nil {
		next.controllers = map[types.UID]owned{}
	}
	for c := range store.Diff(before, now) {
		l.joinLocked(next, feeds, c.Key)
	}
	expired := 0
	for expired < len(l.ended) && (time.Since(l.ended[expired].Ended) > l.keep || len(l.ended)-expired > maxEnded) {
		next.each(l.ended[expired], without)
		expired++
	}
	l.ended = slices.Delete(l.ended, 0, expired)
	l.now.Store(&next.tables)
	for uid, object := range next.controllers {
		if _, used := next.owned.Get(trieKey(uid)); used {
			l.owners.use(object)
		} else {
			l.owners.drop(uid)
		}
	}
}

// joinLocked joins the pods of one name anew.
func (l *lookup) joinLocked(next *edit, feeds []*feed, key string) {
	var all joining
	for _, f := range feeds {
		if pod, ok := l.states[f].Get(key); ok {
			all.add(f, pod)
		}
	}
	hash := trie.HashString(key)
	names := trie.Writer[string, *MergedPod]{Hash: trie.HashString, Owner: next.owner}
	old, known := next.names.Get(hash, key)
	if known {
		next.each(old, without)
		next.names, _, _ = names.Delete(next.names, hash, key)
	}
	if all.empty() {
		if known {
			l.endLocked(next, old)
		}
		return
	}
	pod := all.join()
	if known && !old.shares(&pod) {
		l.endLocked(next, old)
	}
	next.names, _, _ = names.Set(next.names, hash, key, &pod)
	next.each(&pod, with)
}

// endLocked keeps a pod that no source has any more.
func (l *lookup) endLocked(next *edit, pod *MergedPod) {
	if l.keep <= 0 {
		return
	}
	last := *pod
	last.Ended = time.Now()
	l.ended = append(l.ended, &last)
	next.each(&last, with)
}

// edit is a change of tables on its way.
type edit struct {
	tables
	owner       uint64
	controllers map[types.UID]owned // of the pods that were changed; nil without owners
}

// each changes the lists under all values of a pod.
func (e *edit) each(p *MergedPod, change func([]*MergedPod, *MergedPod) []*MergedPod) {
	texts := trie.Writer[string, []*MergedPod]{Hash: trie.HashString, Owner: e.owner}
	addresses := trie.Writer[netip.Addr, []*MergedPod]{Hash: trie.Hash[netip.Addr], Owner: e.owner}
	cgroups := trie.Writer[cgroup, []*MergedPod]{Hash: trie.Hash[cgroup], Owner: e.owner}
	for uid := range p.uids() {
		e.uids = changed(texts, e.uids, uid, p, change)
		if group, ok := cgroupOfUID(uid); ok {
			e.cgroups = changed(cgroups, e.cgroups, group, p, change)
		}
	}
	for pod := range p.pods() {
		if object, ok := ownedBy(pod); ok && e.controllers != nil {
			e.controllers[object.uid] = object
			e.owned = changed(texts, e.owned, string(object.uid), p, change)
		}
		for i := range pod.Status.PodIPs {
			if address, err := netip.ParseAddr(pod.Status.PodIPs[i].IP); err == nil && !pod.Spec.HostNetwork {
				e.addresses = changed(addresses, e.addresses, address.Unmap(), p, change)
			}
		}
		for c := range live.Containers(&pod.Status) {
			e.containers = changed(texts, e.containers, withoutRuntime(c.ContainerID), p, change)
			if last := c.LastTerminationState.Terminated; last != nil {
				e.containers = changed(texts, e.containers, withoutRuntime(last.ContainerID), p, change)
			}
		}
	}
}

// pods yields the pods that were joined.
func (p *MergedPod) pods() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, pod := range []*corev1.Pod{p.Pod, p.Live, p.Mirror} {
			if pod != nil && !yield(pod) {
				return
			}
		}
	}
}

// uids yields the UIDs of these pods. A mirror names the UID by which the kubelet runs the pod.
func (p *MergedPod) uids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for pod := range p.pods() {
			if !yield(string(pod.UID)) || !yield(pod.Annotations[manifest.MirrorAnnotation]) {
				return
			}
		}
	}
}

// shares reports whether two states are of one pod: a source that is gone takes its UID with it.
func (p *MergedPod) shares(next *MergedPod) bool {
	for uid := range p.uids() {
		for other := range next.uids() {
			if uid == other && uid != "" {
				return true
			}
		}
	}
	return false
}

// changed changes the list under one value. The zero value finds no pod.
func changed[K comparable](w trie.Writer[K, []*MergedPod], in trie.Map[K, []*MergedPod], key K, p *MergedPod,
	change func([]*MergedPod, *MergedPod) []*MergedPod) trie.Map[K, []*MergedPod] {
	if key == *new(K) {
		return in
	}
	found, _ := in.Get(w.Hash(key), key)
	if next := change(found, p); len(next) > 0 {
		in, _, _ = w.Set(in, w.Hash(key), key, next)
	} else if found != nil {
		in, _, _ = w.Delete(in, w.Hash(key), key)
	}
	return in
}

// with is found with p before all pods that it takes precedence over.
func with(found []*MergedPod, p *MergedPod) []*MergedPod {
	if slices.Contains(found, p) {
		return found
	}
	at := slices.IndexFunc(found, func(other *MergedPod) bool { return p.precedence() <= other.precedence() })
	if at < 0 {
		at = len(found)
	}
	return slices.Insert(slices.Clone(found), at, p)
}

// without is found without p.
func without(found []*MergedPod, p *MergedPod) []*MergedPod {
	return slices.DeleteFunc(slices.Clone(found), func(other *MergedPod) bool { return other == p })
}

// precedence orders the pods of one value: a pod that runs, one that is finished, one that is gone.
// The address of a finished pod may be another one's already.
func (p *MergedPod) precedence() int {
	switch {
	case !p.Ended.IsZero():
		return 2
	case live.Final(&p.newest().Status):
		return 1
	}
	return 0
}

// withoutRuntime is the ID of a container without the name of its runtime.
func withoutRuntime(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}

// cgroup is a UID as it stands in the names of cgroups: of 32 hexadecimal digits. That of a static
// pod has no dashes, and the systemd driver writes underscores for them.
type cgroup [16]byte

// cgroupOf finds the last UID in a path, after the word pod.
func cgroupOf(path string) (group cgroup, ok bool) {
	for at := strings.LastIndex(path, "pod"); at >= 0; at = strings.LastIndex(path[:at], "pod") {
		name := path[at+len("pod"):]
		if end := strings.IndexAny(name, "/."); end >= 0 {
			name = name[:end]
		}
		if group, ok = cgroupOfUID(name); ok {
			return group, true
		}
	}
	return group, false
}

func cgroupOfUID(uid string) (group cgroup, ok bool) {
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
