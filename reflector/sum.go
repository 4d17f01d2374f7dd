package reflector

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

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
	s.Sharing.Changing += part.Sharing.Changing
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
