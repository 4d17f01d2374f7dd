package reflector

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/sending"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Phase is the present activity of a reflector.
type Phase string

// The phases.
const (
	// Idle is before Run.
	Idle Phase = "idle"
	// Listing is reading the whole state, by a watch list or a LIST.
	Listing Phase = "listing"
	// Watching is following the changes.
	Watching Phase = "watching"
	// Waiting is between two attempts, or before a request that waits for its turn at the client.
	// Err says why.
	Waiting Phase = "waiting"
	// Stopped is after Run. If Run has failed, Err is its error.
	Stopped Phase = "stopped"
)

// Status is the health of a copy at one moment.
type Status struct {
	// Phase is the present activity of the reflector.
	Phase Phase
	// Synced: the store has held a whole state of the server since some time.
	Synced bool
	// ProvenAt is the moment of which the copy is proven to be the server's state: at that moment a
	// consistent answer of the server was asked for, and the copy has all that the answer covers.
	// It is zero before the first proof. See Freshness in the package's documentation.
	ProvenAt time.Time
	// ProofInterval is the time between two such questions: see [WithProof]. The proof of a healthy
	// copy is at most twice as old.
	ProofInterval time.Duration
	// ProbeErr is the error of the last probe, which asked for such a proof; nil if it was
	// answered.
	ProbeErr error
	// Contradiction is what the server, or [Reflector.Doubt], says against the copy. Nil if there
	// is nothing; a relist ends it.
	Contradiction error
	// ResourceVersion is the newest version with its effects in the store; a watch is resumed from
	// there. A version from the future, which no server could have reached by writes, does not move
	// it.
	ResourceVersion string
	// LastContact is when the last object, event or bookmark came: the server, and the way to it,
	// were alive then. An event counts once the store is done with it. A healthy server sends a
	// bookmark about once a minute. A server that is cut off from etcd goes on sending them,
	// all of one version: only LastProgress shows that.
	LastContact time.Time
	// LastEvent is when the last object of a list, or event of a watch, came; bookmarks do not move
	// it. In a quiet collection it grows old in good health.
	LastEvent time.Time
	// LastProgress is when ResourceVersion last moved, by a list, an event or a bookmark: until
	// then the copy is known to have followed. For a version that stands still, see Freshness in
	// the package's documentation.
	LastProgress time.Time

	// Err is the present failure: of the last request, or of an object that could not be decoded or
	// stored. Nil when all is well.
	Err error
	// Class is the class of Err; [OK] when there is none.
	Class Class
	// Since is when things went wrong; Attempts is the number of failed requests since then.
	Since    time.Time
	Attempts int
	// RetryAt is when the next request is made, while Phase is Waiting; zero otherwise. RetryAfter
	// is the wait that the server asked for, if it did (429 and others): obeyed up to five minutes,
	// with jitter on top.
	RetryAt    time.Time
	RetryAfter time.Duration

	// Lists counts completed lists by cause: OK for the first one, then why it had to be made
	// again.
	Lists map[Class]int
	// Watches counts the watches that were begun.
	Watches int
	// Events counts the events of watches that were written to the store.
	Events int
	// Failures counts all failures since the start: failed requests and everything skipped.
	Failures int
	// Skipped counts objects and events that could not be decoded or that the store refused.
	Skipped int
	// Unplaced counts events with a resource version that contradicts the stream's: from another
	// backend, replayed, or from the future. Each is written if the object that it concerns allows
	// it. One relist settles all, at once if an event could not be written, else at the next
	// bookmark or end of the watch; at most one a minute.
	Unplaced int
	// Listed is the number of objects of the newest list. Unusable counts the objects whose newest
	// state could not be decoded or stored, in that list or since. Stale counts the objects that
	// were kept in their last good state, since the newest list had them undecodable.
	Listed, Unusable, Stale int
	// Sharing tells which part of the received bytes was not decoded again. It is zero if the
	// source is no [listwatch.ListWatch].
	Sharing listwatch.SharingStats

	parts []part // of a sum
}

// Ended is the status of the copy once Run has ended at that time, with an error if err is not nil.
// It is for parts that run a reflector and may fail beside it.
func (s Status) Ended(err error, at time.Time) Status {
	s.Phase, s.RetryAt, s.RetryAfter, s.parts = Stopped, time.Time{}, 0, nil
	if err == nil {
		return s
	}
	if s.Err == nil || !errors.Is(err, s.Err) {
		s.Since, s.Attempts = at, 0
	}
	if s.Err, s.Class = err, Classify(err); s.Class == Unknown { // of the program
		s.Class = Ended
	}
	return s
}

// String is one line for logs and people.
func (s Status) String() string {
	line := fmt.Sprintf("%s, synced=%t, version %q", s.Phase, s.Synced, s.ResourceVersion)
	if !s.ProvenAt.IsZero() {
		line += ", proven for " + s.ProvenAt.Format(time.TimeOnly)
	}
	if s.Err != nil {
		line += fmt.Sprintf(", %s since %s (%d attempts): %v", s.Class, s.Since.Format(time.TimeOnly), s.Attempts, s.Err)
	}
	if !s.RetryAt.IsZero() {
		line += ", next request at " + s.RetryAt.Format(time.TimeOnly)
	}
	if s.RetryAfter > 0 {
		line += fmt.Sprintf(" (the server asked to wait %s)", s.RetryAfter)
	}
	return line
}

// statusKeeper is the Status in the making.
type statusKeeper struct {
	mu  sync.Mutex // guards the fields below
	now Status
	// lost is the last object that could not be decoded or stored since the last whole list: it
	// outlives a good connection.
	lost   error
	losses losses
	logged map[Class]time.Time // when each class of failures was last logged
	proof  proof               // ProvenAt, and the claims behind it
	polls  bool                // lists stand in for watches
	// Of the newest list: when it had been read, and how long that took.
	listedAt time.Time
	listTook time.Duration
	// Waits at the client, of the request under way and of the probe beside it; nil for none.
	request, probe *sending.Wait
}

// listShare bounds the lists that are made to prove a copy: they take one part of the time in so
// many.
const listShare = 50

// mayList reports whether a list for the sake of a proof may be made.
func (k *statusKeeper) mayList(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Sub(k.listedAt) >= listShare*k.listTook
}

// requestWaits shows that the request under way waits at the client; nil ends that.
func (k *statusKeeper) requestWaits(w *sending.Wait) { k.change(func(*Status) { k.request = w }) }

// probeWaits is requestWaits for the probe.
func (k *statusKeeper) probeWaits(w *sending.Wait) { k.change(func(*Status) { k.probe = w }) }

// follows reports whether a probe can prove the copy: a watch is open, or lists stand in for
// watches. A server that asks to wait is asked nothing.
func (k *statusKeeper) follows() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	polls := k.now.Phase == Waiting && k.polls && k.now.RetryAfter == 0
	return k.now.Synced && k.request == nil && (k.now.Phase == Watching || polls)
}

// interrupted takes in the end of a stream that may hide a loss, or a restart of the server.
func (k *statusKeeper) interrupted(at time.Time) { k.change(func(*Status) { k.proof.cut = at }) }

// comparison is when the content was last compared, and when it was cut off from the server.
func (k *statusKeeper) comparison() (cut, compared time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.proof.cut, k.proof.compared
}

// compare notes a comparison. It reports whether that, and the proof, make up for an interruption.
func (k *statusKeeper) compare(asked time.Time) (caughtUp bool) {
	k.change(func(s *Status) {
		k.proof.compared = asked
		caughtUp = k.caughtUpLocked()
	})
	return caughtUp
}

// caughtUpLocked reports whether the interruption that is still shown is made up for.
func (k *statusKeeper) caughtUpLocked() bool { return k.now.Class == CatchingUp && k.proof.whole() }

// explains reports whether a loss explains that an object, or the number of objects if the key is
// empty, is not the server's.
func (k *statusKeeper) explains(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.losses.explain(key) || key == "" && len(k.losses.keys) > 0
}

// mendedLocked notes that the store has the newest state of an object.
func (k *statusKeeper) mendedLocked(obj store.Object) {
	k.losses.mended(store.KeyOf(obj))
	k.now.Unusable = k.losses.unusable
}

func (k *statusKeeper) change(do func(*Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do(&k.now)
}

// reachedLocked notes the newest version with its effects in the store.
func (k *statusKeeper) reachedLocked(version string, now time.Time) {
	if version != k.now.ResourceVersion {
		k.now.ResourceVersion, k.now.LastProgress = version, now
		k.proof.reached(version)
		k.now.ProvenAt = k.proof.at
	}
}

// read returns a copy that shares nothing.
func (k *statusKeeper) read() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.now
	s.Lists = map[Class]int{}
	maps.Copy(s.Lists, k.now.Lists)
	if k.request != nil {
		s.Phase = Waiting
	}
	if err := throttled(k.request); err != nil {
		s.Err, s.Class, s.Since = err, ClientThrottled, k.request.Since
	}
	if err := throttled(k.probe); err != nil {
		s.ProbeErr = err
	}
	return s
}

// failed records a failure. It reports whether its class is news, whether that is due to be logged,
// and since when the copy fails.
func (k *statusKeeper) failed(class Class, err error, at time.Time) (news, due bool, since time.Time) {
	k.change(func(s *Status) {
		news = s.Class != class
		if s.Err == nil {
			s.Since = at
			s.Attempts = 0
		}
		s.Err, s.Class = err, class
		s.Attempts++
		s.Failures++
		if lostBy(class) != "" {
			k.lost = err
		}
		if contradicts(class) {
			s.Contradiction = err
		}
		since = s.Since
		if last, known := k.logged[class]; news && (!known || last.Before(since) || at.Sub(last) >= logAgain) {
			k.logged[class], due = at, true
		}
	})
	return news, due, since
}

// healed records that the copy is whole. A failure of the watch stays.
func (k *statusKeeper) healed() {
	k.change(func(s *Status) { k.lost, s.Contradiction = nil, nil })
}

// well records that the connection works. An earlier loss stays shown, and so does an interruption
// until the copy is proven to have caught up. It reports whether all is well now, and was not
// before.
func (k *statusKeeper) well() (news bool) {
	k.change(func(s *Status) {
		switch {
		case k.lost != nil:
			s.Err, s.Class, s.Attempts = k.lost, Classify(k.lost), 0
			return
		case !s.ProvenAt.IsZero() && !k.proof.whole(): // else the verdict says that it may be old
			if s.Err == nil {
				s.Since = time.Now()
			}
			s.Err, s.Class, s.Attempts = errCatchingUp, CatchingUp, 0
			return
		}
		news = s.Err != nil
		s.Err, s.Class, s.Since, s.Attempts = nil, OK, time.Time{}, 0
	})
	return news
}

// Sum is the Status of several copies that are one collection to their reader, by their names. The
// sum is synced if all copies are, failing if one is, and its LastContact is the oldest; so are its
// ProvenAt, LastEvent and LastProgress. Its [Verdict] is that of the first copy that is not right,
// and names all such copies. Its resource version is empty, since versions of several copies have
// no sum. Without copies it is idle and synced.
func Sum(parts iter.Seq2[string, Status]) Status {
	sum := Status{Phase: Idle, Synced: true, Class: OK, Lists: map[Class]int{}}
	first := true
	for name, s := range parts {
		if first || rank(s.Phase) > rank(sum.Phase) {
			sum.Phase = s.Phase
		}
		sum.ProvenAt = earlier(first, sum.ProvenAt, s.ProvenAt)
		sum.ProofInterval = max(sum.ProofInterval, s.ProofInterval)
		if sum.ProbeErr == nil && s.ProbeErr != nil {
			sum.ProbeErr = fmt.Errorf("member %q: %w", name, s.ProbeErr)
		}
		sum.LastContact = earlier(first, sum.LastContact, s.LastContact)
		sum.LastEvent = earlier(first, sum.LastEvent, s.LastEvent)
		sum.LastProgress = earlier(first, sum.LastProgress, s.LastProgress)
		if sum.Contradiction == nil && s.Contradiction != nil {
			sum.Contradiction = fmt.Errorf("member %q: %w", name, s.Contradiction)
		}
		if sum.Err == nil && s.Err != nil {
			sum.Err, sum.Class, sum.Since, sum.Attempts = fmt.Errorf("member %q: %w", name, s.Err), s.Class, s.Since, s.Attempts
		}
		if s.RetryAt.After(sum.RetryAt) {
			sum.RetryAt, sum.RetryAfter = s.RetryAt, s.RetryAfter
		}
		sum.add(s)
		sum.parts = append(sum.parts, part{name, s})
		first = false
	}
	return sum
}

// part is one copy of a sum.
type part struct {
	name   string
	status Status
}

// add takes in the parts of a Status that add up.
func (s *Status) add(part Status) {
	s.Synced = s.Synced && part.Synced
	for class, n := range part.Lists {
		s.Lists[class] += n
	}
	s.Watches += part.Watches
	s.Events += part.Events
	s.Failures += part.Failures
	s.Skipped += part.Skipped
	s.Unplaced += part.Unplaced
	s.Listed += part.Listed
	s.Unusable += part.Unusable
	s.Stale += part.Stale
	s.Sharing.Same += part.Sharing.Same
	s.Sharing.Lookups += part.Sharing.Lookups
	s.Sharing.Hits += part.Sharing.Hits
	s.Sharing.Bytes += part.Sharing.Bytes
	s.Sharing.Shared += part.Sharing.Shared
	s.Sharing.Entries += part.Sharing.Entries
	s.Sharing.Held += part.Sharing.Held
}

// earlier is the earlier of two times, of which the first one does not count yet if there is only
// one.
func earlier(first bool, so, now time.Time) time.Time {
	if first || now.Before(so) {
		return now
	}
	return so
}

// rank orders the phases: a sum has the phase of the part that is farthest from following.
func rank(p Phase) int {
	return slices.Index([]Phase{Watching, Listing, Waiting, Idle, Stopped}, p)
}
