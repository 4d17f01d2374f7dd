package lookup

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// Lookup finds the pods of one node. Make it with [New]. All methods are safe for concurrent use.
// Those that find a pod return nil if there is none, and else a pod that is shared and read-only.
type Lookup struct {
	keep   time.Duration
	pods   *sources.Sources
	owners *owners // nil: they are not asked for
	now    atomic.Pointer[table]
	fresh  signal.Signal                            // a new table
	saver  atomic.Pointer[checkpoint.Saver[[]loss]] // of lost; nil: no checkpoint

	// These belong to the goroutine that changes the table.
	lost    []loss            // in the order of their times
	uses    map[types.UID]int // of controllers, by records
	scratch []value
}

// Option configures a [Lookup].
type Option func(*Lookup)

// KeepEnded keeps past values: for a time after a value was last true, it finds its pod. So a pod
// is found by an address that its last status lacks, and by a container from before two restarts.
// After the last source has dropped the pod, all its values find it, with [Pod].Ended set. A pod
// that has the value now is found first. Use it to attribute data that comes late, such as logs and
// flows. Zero, the default, keeps nothing.
//
// A loss of values is a restart of a container, a change of an address or the end of a pod, for
// example. The last 10,000 losses on the node are kept. [sources.Checkpoint] keeps them and their
// pods for a restart, up to 64 MiB. Its problems are in [sources.Sources.Status] under the source
// "owners", or without [Owners] under "ended pods".
func KeepEnded(d time.Duration) Option { return func(l *Lookup) { l.keep = d } }

// maxLost bounds the losses that KeepEnded keeps.
const maxLost = 10_000

// New makes look-ups of the pods of a node, which their Run keeps up to date. Call it before Run.
func New(pods *sources.Sources, options ...Option) *Lookup {
	if pods == nil {
		panic("lookup: New: the sources are nil: make them with sources.New")
	}
	l := &Lookup{pods: pods, uses: map[types.UID]int{}}
	l.now.Store(&table{})
	if err := null.Options("lookup: New", options, func(option Option) { option(l) }); err != nil {
		panic(err.Error())
	}
	observer := sources.Observer{Changed: l.changed}
	if l.owners != nil {
		l.owners.pods = pods
	}
	if l.owners != nil || l.keeps() {
		observer.Start, observer.Status = l.start, l.status
	}
	pods.Observe(observer)
	return l
}

// Run runs the sources, as [sources.Sources.Run] does, and reads their updates: for a program that
// only looks up. Wait for [sources.Sources.WaitSynced] before the first look-up.
func (l *Lookup) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- l.pods.Run(ctx) }()
	for range l.pods.Updates() {
	}
	return <-ended
}

// keeps reports whether losses are kept in a checkpoint.
func (l *Lookup) keeps() bool { return l.keep > 0 && l.pods.Checkpoints() != "" }

// start restores the checkpoints. work goes on until ctx ends.
func (l *Lookup) start(ctx context.Context) (work func(), err error) {
	ask := func() {}
	if l.owners != nil {
		if ask, err = l.owners.start(ctx); err != nil {
			return nil, err
		}
	}
	if !l.keeps() {
		return ask, nil
	}
	save := l.restore(ctx) // which uses owners of the checkpoint
	return func() {
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(ask)
		defer save()()
		<-ctx.Done()
	}, nil
}

// status is the health of the owners and of the checkpoint.
func (l *Lookup) status() sources.Status {
	s := sources.Status{Source: endedSource, Seen: true, Optional: true, Updates: map[sources.Op]int{}, Report: sources.Report{Complete: true}}
	if l.owners != nil {
		s = l.owners.status()
	}
	if saver := l.saver.Load(); saver != nil {
		if err := saver.Problem(); err != nil {
			s.Problems = append(s.Problems, err)
		}
	}
	return s
}

// Pod is a pod of the node, with every source that has it.
type Pod struct {
	sources.MergedPod
	// Ended is when the last source dropped the pod, if [KeepEnded] keeps it. Else it is zero. Of a
	// pod that ended while the agent was down, it may be the time of the last checkpoint.
	Ended time.Time
}

// ByUID finds a pod by its UID. A static pod is found by each of its UIDs: that of its manifest, of
// the kubelet and of its mirror. See "Static pods" in the package documentation.
func (l *Lookup) ByUID(uid types.UID) *Pod {
	return l.byText(uidValue, string(uid))
}

// ByName finds the pod that has a name, or else the last one that had it. That of a static pod ends
// in the name of the node.
func (l *Lookup) ByName(namespace, name string) *Pod {
	var buffer [maxName]byte
	return l.byBytes(nameValue, append(append(append(buffer[:0], namespace...), '/'), name...))
}

// maxName is the longest namespace, a slash and the longest name.
const maxName = 63 + 1 + 253

// ByContainerID finds the pod of a container by its ID in the status of the pod: that of a running
// container, or of one that was terminated last. The ID may have the name of its runtime, as in
// containerd://0123.
func (l *Lookup) ByContainerID(id string) *Pod {
	return l.byText(containerValue, withoutRuntime(id))
}

// ByIP finds the pod that has an IP address of its own. Pods on the network of the node have none.
func (l *Lookup) ByIP(address netip.Addr) *Pod {
	bytes := address.As16()
	return l.byBytes(addressValue, bytes[:])
}

// ByCgroup finds the pod of a cgroup by its path, as in /proc/PID/cgroup: that of the pod, or any
// path below it, of the systemd driver or of cgroupfs. A container can be a node itself, with pods
// that the sources do not have. For a cgroup of such a pod, ByCgroup finds the pod around it.
func (l *Lookup) ByCgroup(path string) *Pod {
	for group, above, ok := lastCgroup(path); ok; group, above, ok = lastCgroup(above) {
		if pod := l.byBytes(cgroupValue, group[:]); pod != nil {
			return pod
		}
	}
	return nil
}

func (l *Lookup) byText(kind valueKind, text string) *Pod {
	found, _ := l.now.Load().Get(trie.HashString(text), text)
	return l.first(found, kind)
}

// byBytes is byText of a text that is still in a buffer.
func (l *Lookup) byBytes(kind valueKind, text []byte) *Pod {
	found, ok := trie.PlaceOfBytes(*l.now.Load(), trie.HashBytes(text), text)
	if !ok {
		return nil
	}
	return l.first(found.Value, kind)
}

// first is the pod that counts, unless it lost the value too long ago.
func (l *Lookup) first(found []entry, kind valueKind) *Pod {
	if one := firstOf(found, kind); one != nil && !l.expired(one.lost) {
		return one.now.Load()
	}
	return nil
}

func (l *Lookup) expired(lost time.Time) bool { return !lost.IsZero() && time.Since(lost) > l.keep }

// changed takes in the pods that a source has changed. The cost is that of these pods.
func (l *Lookup) changed(changes iter.Seq[sources.PodChange]) {
	e := l.edit()
	for c := range changes {
		e.change(c.Key, c.New)
	}
	l.take(e)
}

// take makes the table of an edit that of look-ups, without the values that are kept too long.
func (l *Lookup) take(e *edit) {
	over := 0
	for over < len(l.lost) && (l.expired(l.lost[over].at) || len(l.lost)-over > maxLost) {
		e.forget(l.lost[over])
		over++
	}
	l.lost = slices.Delete(l.lost, 0, over)
	if e.written {
		l.now.Store(&e.table)
		l.fresh.Broadcast()
	}
	for uid, object := range e.touched {
		if l.uses[uid] > 0 {
			l.owners.use(object)
		} else {
			l.owners.drop(uid)
		}
	}
	if saver := l.saver.Load(); saver != nil && e.lost {
		saver.Offer(l.losses(e.at))
	}
}
