package kubelet

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// remembered is how long a UID counts as ended after it was last told or listed. Events and lists
// that are older than the deletion have come long before.
const remembered = 10 * time.Minute

var errUndecodable = errors.New("a pod of the kubelet cannot be decoded, or has no name or UID")

// ledger is the kubelet's pods by UID, made of lists and events. It does no I/O, has no clock, and
// is not safe for concurrent use.
type ledger struct {
	held  map[types.UID]held
	known map[digest]types.UID // of the held pods, so that equal bytes are decoded once
	ended map[types.UID]ended
	// touched has the pods of events since the list under way was asked for: that list may be older
	// than they are.
	touched map[types.UID]bool
	// keepUntil is when the grace after a lost connection ends.
	keepUntil time.Time
	// restarted: the kubelet may have started anew, and has listed no pod of the API server since.
	restarted bool
	changed   bool // held has changed since the last snapshot
	pods      store.Indexer[*corev1.Pod]
}

// digest is that of the bytes of a pod.
type digest [sha256.Size]byte

type held struct {
	pod *corev1.Pod
	sum digest
}

// ended is a pod that was told DELETED, or that a list no longer had.
type ended struct {
	// last is when the pod was told; for a pod of the API server, or when it was last listed. A
	// static pod that is listed for long was put back.
	last   time.Time
	static bool
	// unlisted: no DELETED has come yet. A list may have the pod again, but events that come now
	// may be older than the list without it.
	unlisted bool
}

func newLedger() *ledger {
	return &ledger{
		held: map[types.UID]held{}, known: map[digest]types.UID{},
		ended: map[types.UID]ended{}, touched: map[types.UID]bool{},
	}
}

// lost notes that the connection was lost. Missing pods are kept until then; zero: they are not.
func (l *ledger) lost(until time.Time) { l.keepUntil, l.restarted = until, !until.IsZero() }

// asks notes that a list is asked for.
func (l *ledger) asks() { clear(l.touched) }

// list takes a complete list. missing is the number of pods that are not in it, and kept. A pod
// that cannot be decoded may be any of these.
func (l *ledger) list(raws [][]byte, now time.Time) (missing int, err error) {
	listed := map[types.UID]bool{}
	for _, raw := range raws {
		next, failed := l.decode(raw)
		if failed != nil {
			err = failed
			continue
		}
		uid := next.pod.UID
		listed[uid] = true
		l.restarted = l.restarted && isStatic(next.pod)
		switch end, over := l.ended[uid]; {
		case over && end.unlisted:
			delete(l.ended, uid)
			l.hold(next)
		case over && end.static:
		case over:
			l.ended[uid] = ended{last: now}
		case !l.touched[uid]:
			l.hold(next)
		}
	}
	keep := err != nil || now.Before(l.keepUntil)
	for uid, old := range l.held {
		switch {
		case listed[uid] || l.touched[uid]:
		case keep || l.restarted && !isStatic(old.pod):
			missing++
		default:
			l.drop(uid)
			l.ended[uid] = ended{last: now, static: isStatic(old.pod), unlisted: true}
		}
	}
	for uid, end := range l.ended {
		gone := end.static && !listed[uid] && !l.touched[uid]
		if gone || now.Sub(end.last) > remembered {
			delete(l.ended, uid)
		}
	}
	return missing, err
}

// event takes an event of a watch that came after the initial list of the watch.
func (l *ledger) event(kind api.EventType, raw []byte, now time.Time) error {
	next, err := l.decode(raw)
	if err != nil {
		return err
	}
	uid := next.pod.UID
	old, known := l.held[uid]
	end, over := l.ended[uid]
	switch {
	case kind == api.EventType_DELETED:
		l.ended[uid] = ended{last: now, static: end.static || known && isStatic(old.pod)}
		l.touched[uid] = true
		l.drop(uid)
		return nil
	case over && !(end.static && kind == api.EventType_ADDED):
		return nil
	case known && older(next.pod, old.pod):
		return nil // it waited in the kubelet while a list overtook it
	}
	delete(l.ended, uid)
	l.touched[uid] = true
	l.hold(next)
	return nil
}

// older reports whether a is certainly an older state of the pod b.
func older(a, b *corev1.Pod) bool {
	order, _ := store.CompareVersions(a.ResourceVersion, b.ResourceVersion)
	return order < 0 || order == 0 && live.Compare(&a.Status, &b.Status) < 0
}

// decode decodes a pod, unless the same bytes are held.
func (l *ledger) decode(raw []byte) (held, error) {
	sum := digest(sha256.Sum256(raw))
	if uid, ok := l.known[sum]; ok {
		return l.held[uid], nil
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil || pod.UID == "" || pod.Name == "" {
		return held{}, errUndecodable
	}
	return held{pod, sum}, nil
}

func (l *ledger) hold(next held) {
	uid := next.pod.UID
	old, known := l.held[uid]
	if known && old.sum == next.sum {
		return
	}
	if known {
		delete(l.known, old.sum)
	}
	l.held[uid], l.known[next.sum], l.changed = next, uid, true
}

func (l *ledger) drop(uid types.UID) {
	old, known := l.held[uid]
	if !known {
		return
	}
	delete(l.known, old.sum)
	delete(l.held, uid)
	l.changed = true
}

// snapshot is the pods by name. Of two pods with one name, the one that was created later counts:
// the kubelet still ends the other.
func (l *ledger) snapshot() (sources.Pods, error) {
	byName := map[string]*corev1.Pod{}
	for _, one := range l.held {
		key := store.KeyOf(one.pod)
		if other := byName[key]; other == nil || replaces(one.pod, other) {
			byName[key] = one.pod
		}
	}
	l.changed = false
	err := l.pods.Replace(func(yield func(*corev1.Pod, error) bool) {
		for _, pod := range byName {
			if !yield(pod, nil) {
				return
			}
		}
	}, store.At(""))
	return l.pods.Snapshot(), err
}

// replaces reports whether a counts, of two pods with one name.
func replaces(a, b *corev1.Pod) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) > 0
}

func isStatic(pod *corev1.Pod) bool {
	source := pod.Annotations[manifest.SourceAnnotation]
	return source != "" && source != sources.APISource
}
