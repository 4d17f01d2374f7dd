// Package ledger keeps the pods of a kubelet by UID, made of its lists and events. A kubelet that
// has just started lists few pods: the ledger decides which missing pods are gone, and which are
// kept because the kubelet has not read all of its own sources yet.
package ledger

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

const (
	// ClassNotReady is the class of a kubelet that has not read its own sources.
	ClassNotReady = "not_ready"
	// Patience is how long pods of the API server are kept while a kubelet lists none. A kubelet
	// that restarts while its API server is away lists none until the server is back.
	Patience = time.Hour
	// longest is for how many graces a static pod is kept while each answer may be of a kubelet
	// that has just started.
	longest = 5
	// remembered is how long a UID counts as ended after it was last told or listed. Events and
	// lists that are older than the deletion have come long before.
	remembered = 10 * time.Minute
	// apiSource is the value of manifest.SourceAnnotation for a pod of the API server.
	apiSource = "api"
)

// ErrUndecodable is the error of bytes that are no pod.
var ErrUndecodable = errors.New("a pod of the kubelet cannot be decoded, or has no name or UID")

// Event is the kind of an event.
type Event int

// The events of a kubelet.
const (
	Added Event = iota
	Modified
	Deleted
)

// standing is how far the lists of a kubelet are trusted.
type standing int

const (
	// unheard: the kubelet may have just started, and has listed no pod of the API server since.
	unheard standing = iota
	// settled: the kubelet has heard its API server.
	settled
	// away: it was settled, and does not answer. Its next list shows whether it is the same one.
	away
)

// origin tells of which kubelet a list is. A connection does not tell: behind a proxy it outlives
// the kubelet, and idle ones end without a restart. A kubelet marks each pod with the moment at
// which it first saw it, so that a restarted one marks all of them anew.
type origin int

const (
	unknown origin = iota // no pod of the list was told before
	same                  // the kubelet of before: a pod has its old mark
	another               // one that has started since: there are only new marks
)

// absence is how long lists have not had a pod that is kept.
type absence struct {
	since    time.Time     // the first list without it
	answered time.Duration // of the ledger, at that list
	heard    bool          // a list of this kubelet with other pods of the API server lacked it
}

// Ledger is the pods of one kubelet. It does no I/O, has no clock, and is not safe for concurrent
// use.
type Ledger struct {
	node   string
	grace  time.Duration
	decode func(raw []byte) (*corev1.Pod, error)

	held  map[types.UID]held
	known map[digest]types.UID // of the held pods, so that equal bytes are decoded once
	ended map[types.UID]ended
	// touched has the pods of events since the list under way was asked for: that list may be older
	// than they are.
	touched map[types.UID]bool

	absent   map[types.UID]absence // the kept pods that the last list did not have
	marks    map[types.UID]string  // when the kubelet first saw the pods that it told last
	standing standing
	// answered is the time between lists that no failure and no restart came between. The graces of
	// static pods pass in it: a kubelet that starts over and over has not read its manifests.
	answered time.Duration
	at       time.Time // of the last list; zero if the time since does not count

	changed bool // held has changed since the last snapshot
	pods    store.Indexer[*corev1.Pod]

	last outcome // of the last list, and of the events after it
}

// outcome is the faults of a list.
type outcome struct {
	standing  standing
	listed    bool   // there was a list
	kept      int    // pods that are not in it, and kept
	elsewhere string // another node, to which a pod in it is bound
	bad       error  // of a pod that cannot be decoded
}

// digest is that of the bytes of a pod.
type digest [sha256.Size]byte

type held struct {
	pod *corev1.Pod
	sum digest
}

// ended is a pod that was told as Deleted, or that a list no longer had.
type ended struct {
	// last is when the pod was told; for a pod of the API server, or when it was last listed. A
	// static pod that is listed for long was put back.
	last   time.Time
	static bool
	// unlisted: no Deleted has come yet. A list may have the pod again, but events that come now
	// may be older than the list without it.
	unlisted bool
}

// Open makes the ledger of the kubelet of a node. decode makes a pod of its bytes; it returns
// ErrUndecodable if they are none. Without grace no missing pod is kept.
func Open(node string, grace time.Duration, decode func(raw []byte) (*corev1.Pod, error)) *Ledger {
	return &Ledger{
		node: node, grace: grace, decode: decode,
		held: map[types.UID]held{}, known: map[digest]types.UID{},
		ended: map[types.UID]ended{}, touched: map[types.UID]bool{},
		absent: map[types.UID]absence{}, marks: map[types.UID]string{},
	}
}

// Lost notes that the kubelet did not answer, or has ended a watch: it may start anew.
func (l *Ledger) Lost() {
	if l.standing == settled {
		l.standing = away
	}
	l.forget()
}

// forget no longer counts the lists of before: they may be another kubelet's.
func (l *Ledger) forget() {
	l.at = time.Time{}
	for uid, absence := range l.absent {
		absence.heard = false
		l.absent[uid] = absence
	}
}

// Asks notes that a list is asked for.
func (l *Ledger) Asks() { clear(l.touched) }

// List takes a complete list.
func (l *Ledger) List(raws [][]byte, now time.Time) {
	listed, heard, from := l.read(raws, now)
	before := l.standing
	switch {
	case heard, from == same && l.standing == away:
		l.standing = settled
	case from != same:
		l.standing = unheard
	}
	if from == another || l.standing == unheard && before != unheard {
		l.forget()
	}
	l.passes(now)
	l.last.standing, l.last.listed = l.standing, true
	for uid, old := range l.held {
		switch {
		case listed[uid] || l.touched[uid]:
		case l.last.bad != nil || l.keeps(uid, from, now): // a bad pod may be any of these
			l.last.kept++
			l.misses(uid, heard, now)
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
}

// passes counts the time since the last list.
func (l *Ledger) passes(now time.Time) {
	if !l.at.IsZero() {
		l.answered += now.Sub(l.at)
	}
	l.at = now
}

// misses notes that a list does not have a pod that is kept.
func (l *Ledger) misses(uid types.UID, heard bool, now time.Time) {
	one, again := l.absent[uid]
	if !again {
		one.since, one.answered = now, l.answered
	}
	one.heard = one.heard || heard
	l.absent[uid] = one
}

// read takes the pods of a list. heard: one of them is of the API server.
func (l *Ledger) read(raws [][]byte, now time.Time) (listed map[types.UID]bool, heard bool, from origin) {
	l.last, listed = outcome{}, make(map[types.UID]bool, len(raws))
	before := l.marks
	l.marks = make(map[types.UID]string, len(raws))
	for _, raw := range raws {
		next, err := l.decoded(raw)
		if err != nil {
			l.last.bad = err
			continue
		}
		uid := idOf(next.pod)
		listed[uid] = true
		heard = heard || !isStatic(next.pod)
		l.mark(next.pod)
		switch mark := l.marks[uid]; {
		case mark == "" || before[uid] == "":
		case mark == before[uid]:
			from = same
		case from == unknown:
			from = another
		}
		if at := next.pod.Spec.NodeName; at != "" && at != l.node {
			l.last.elsewhere = at
		}
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
	return listed, heard, from
}

// mark remembers when the kubelet first saw a pod that it tells.
func (l *Ledger) mark(pod *corev1.Pod) {
	l.marks[idOf(pod)] = pod.Annotations[manifest.SeenAnnotation]
}

// keeps reports whether a pod that a list does not have is kept. It is gone if the kubelet of the
// list has listed it before. Another kubelet may not have read all of its sources. It admits the
// pods of its API server one by one, so that the first list with any of them may lack others.
func (l *Ledger) keeps(missing types.UID, from origin, now time.Time) bool {
	absence, again := l.absent[missing]
	switch {
	case l.grace == 0:
		return false
	case !again:
		return from != same
	case isStatic(l.held[missing].pod):
		return l.answered-absence.answered < l.grace && now.Sub(absence.since) < longest*l.grace
	case l.standing == settled && absence.heard:
		return false
	}
	return now.Sub(absence.since) < max(l.grace, Patience)
}

// Happened takes an event that came after the first list.
func (l *Ledger) Happened(kind Event, raw []byte, now time.Time) {
	next, err := l.decoded(raw)
	if err != nil {
		l.last.bad = err
		return
	}
	uid := idOf(next.pod)
	old, known := l.held[uid]
	end, over := l.ended[uid]
	switch {
	case kind == Deleted:
		l.ended[uid] = ended{last: now, static: end.static || known && isStatic(old.pod)}
		l.touched[uid] = true
		l.drop(uid)
		return
	case over && !(end.static && kind == Added):
		return
	case known && older(next.pod, old.pod):
		return // it waited in the kubelet while a list overtook it
	}
	delete(l.ended, uid)
	l.touched[uid] = true
	l.mark(next.pod)
	l.hold(next)
}

// Round is the health of the kubelet at an address, as its last list and the events after it show
// it. No pod is missing if it is complete.
func (l *Ledger) Round(at string, contact bool) access.Round {
	round := access.Round{Contact: contact, Complete: l.last.bad == nil}
	if l.last.bad != nil {
		round.Problems = append(round.Problems, access.Mark("undecodable", fmt.Errorf("%s: %w", at, l.last.bad)))
	}
	if l.last.kept > 0 {
		round.Problems = append(round.Problems, access.Mark(ClassNotReady,
			fmt.Errorf("%s: %d pods are kept that the kubelet does not list: it may have started anew", at, l.last.kept)))
	}
	switch {
	case l.last.elsewhere != "":
		round.Doubt = access.Mark("not_found", fmt.Errorf("%s: it lists pods of the node %q, and not of %q: "+
			"is it another node's kubelet, or has New another node's name?", at, l.last.elsewhere, l.node))
	case l.last.listed && l.last.standing == unheard:
		round.Doubt = access.Mark(ClassNotReady, fmt.Errorf("%s: the kubelet lists no pod of the API server: "+
			"it may have just started, so that pods are missing", at))
	}
	return round
}

// older reports whether a is certainly an older state of the pod b.
func older(a, b *corev1.Pod) bool {
	order, _ := store.VersionOf(a).Compare(store.VersionOf(b))
	return order < 0 || order == 0 && live.Compare(&a.Status, &b.Status) < 0
}

// decoded decodes a pod, unless the same bytes are held.
func (l *Ledger) decoded(raw []byte) (held, error) {
	sum := digest(sha256.Sum256(raw))
	if uid, ok := l.known[sum]; ok {
		return l.held[uid], nil
	}
	pod, err := l.decode(raw)
	if err == nil && pod.Name == "" {
		err = ErrUndecodable
	}
	return held{pod, sum}, err
}

func (l *Ledger) hold(next held) {
	uid := idOf(next.pod)
	delete(l.absent, uid)
	old, known := l.held[uid]
	if known && old.sum == next.sum {
		return
	}
	if known {
		delete(l.known, old.sum)
	}
	l.held[uid], l.known[next.sum], l.changed = next, uid, true
}

func (l *Ledger) drop(uid types.UID) {
	old, known := l.held[uid]
	if !known {
		return
	}
	delete(l.known, old.sum)
	delete(l.held, uid)
	delete(l.absent, uid)
	l.changed = true
}

// Changed reports whether Snapshot has changed since it was called last.
func (l *Ledger) Changed() bool { return l.changed }

// Snapshot is the pods by name. Of two pods with one name, the one that was created later counts:
// the kubelet still ends the other.
func (l *Ledger) Snapshot() (store.Snapshot[*corev1.Pod], error) {
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

// idOf is the UID of a pod. Every kubelet tells it; servers that stand for one may tell none.
func idOf(pod *corev1.Pod) types.UID {
	return cmp.Or(pod.UID, types.UID(store.KeyOf(pod)))
}

func isStatic(pod *corev1.Pod) bool {
	source := pod.Annotations[manifest.SourceAnnotation]
	return source != "" && source != apiSource
}
