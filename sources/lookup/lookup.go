package lookup

import (
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
)

// Lookup finds the pods of one node. Make it with [New]. All methods are safe for concurrent use.
// Those that find a pod return nil if there is none, and else a pod that is shared and read-only.
type Lookup struct {
	keep   time.Duration
	owners *owners // nil: they are not asked for
	now    atomic.Pointer[tables]
	ended  []*Pod // by the time of their end; of changed alone
}

// Option configures a [Lookup].
type Option func(*Lookup)

// KeepEnded keeps the last state of each pod for a time after the last source has dropped it, and
// at most 10,000 of them. Look-ups find such a pod, with [Pod].Ended set, unless a pod that has not
// ended is found first. Use it to attribute data that comes late, such as logs and flows. Zero, the
// default, keeps none.
func KeepEnded(d time.Duration) Option { return func(l *Lookup) { l.keep = d } }

// maxEnded bounds the pods that KeepEnded keeps.
const maxEnded = 10_000

// New makes look-ups of the pods of a node, which their Run keeps up to date. Call it before Run.
func New(pods *sources.Sources, options ...Option) *Lookup {
	if pods == nil {
		panic("lookup: New: the sources are nil: make them with sources.New")
	}
	l := &Lookup{}
	l.now.Store(&tables{})
	if err := null.Options("lookup: New", options, func(option Option) { option(l) }); err != nil {
		panic(err.Error())
	}
	observer := sources.Observer{Changed: l.changed}
	if l.owners != nil {
		l.owners.pods = pods
		observer.Start, observer.Status = l.owners.start, l.owners.status
	}
	pods.Observe(observer)
	return l
}

// Pod is a pod of the node, with every source that has it.
type Pod struct {
	sources.MergedPod
	// Ended is when the last source dropped the pod, if [KeepEnded] keeps it. Else it is zero.
	Ended time.Time
}

// ByUID finds a pod by its UID. A static pod is found by each of its UIDs: that of its manifest, of
// the kubelet and of its mirror.
func (l *Lookup) ByUID(uid types.UID) *Pod {
	found, _ := l.now.Load().uids.Get(textKey(string(uid)))
	return l.first(found)
}

// ByContainerID finds the pod of a container by its ID in the status of the pod: that of a running
// container, or of one that was terminated last. The ID may have the name of its runtime, as in
// containerd://0123.
func (l *Lookup) ByContainerID(id string) *Pod {
	found, _ := l.now.Load().containers.Get(textKey(withoutRuntime(id)))
	return l.first(found)
}

// ByIP finds the pod that has an IP address of its own. Pods on the network of the node have none.
func (l *Lookup) ByIP(address netip.Addr) *Pod {
	address = address.Unmap()
	found, _ := l.now.Load().addresses.Get(trie.Hash(address), address)
	return l.first(found)
}

// ByCgroup finds the pod of a cgroup by its path, as in /proc/PID/cgroup: that of the pod, or any
// path below it, of the systemd driver or of cgroupfs.
func (l *Lookup) ByCgroup(path string) *Pod {
	group, ok := cgroupOf(path)
	if !ok {
		return nil
	}
	found, _ := l.now.Load().cgroups.Get(trie.Hash(group), group)
	return l.first(found)
}

// first is the pod that counts, unless it ended too long ago.
func (l *Lookup) first(found []*Pod) *Pod {
	if len(found) == 0 || l.expired(found[0]) {
		return nil
	}
	return found[0]
}

func (l *Lookup) expired(p *Pod) bool { return !p.Ended.IsZero() && time.Since(p.Ended) > l.keep }

// changed takes in the pods that a source has changed. The cost is that of these pods.
func (l *Lookup) changed(pods iter.Seq2[string, sources.MergedPod]) {
	next := &edit{tables: *l.now.Load(), owner: trie.NewOwner()}
	if l.owners != nil {
		next.controllers = map[types.UID]owned{}
	}
	for key, pod := range pods {
		if old, gone := next.replace(key, pod); gone && l.keep > 0 {
			ended := &Pod{old.MergedPod, time.Now()}
			l.ended = append(l.ended, ended)
			next.each(ended, with)
		}
	}
	expired := 0
	for expired < len(l.ended) && (l.expired(l.ended[expired]) || len(l.ended)-expired > maxEnded) {
		next.each(l.ended[expired], without)
		expired++
	}
	l.ended = slices.Delete(l.ended, 0, expired)
	l.now.Store(&next.tables)
	for uid, object := range next.controllers {
		if _, used := next.owned.Get(textKey(string(uid))); used {
			l.owners.use(object)
		} else {
			l.owners.drop(uid)
		}
	}
}
