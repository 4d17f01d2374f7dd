package sources

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

var family = metrics.Family{Prefix: "tributary_sources_", Label: "sources"}

var (
	syncedAll   = family.Gauge("synced", "1 once the first state of every required source has been read.")
	seen        = family.Gauge("seen", "1 once the first state of the source has been read.", "source")
	optional    = family.Gauge("optional", "1 if the source is not needed for readiness.", "source")
	restored    = family.Gauge("restored", "1 while the state is a checkpoint's.", "source")
	stale       = family.Gauge("stale", "1 while the last contact is older than the source permits.", "source")
	incomplete  = family.Gauge("incomplete", "1 while a problem may hide a pod.", "source")
	problems    = family.Gauge("problems", "Present problems of a class.", "source", "class")
	pods        = family.Gauge("pods", "Pods in the newest state.", "source")
	skipped     = family.Gauge("skipped_files", "Files that are ignored for their names.", "source")
	lastContact = family.Gauge("last_contact_timestamp_seconds", "When the file, URL or server was last read or heard.", "source")
	lastSet     = family.Gauge("last_set_timestamp_seconds", "When the source last set a state.", "source")
	pending     = family.Gauge("reader_pending_states", "States that the reader of updates has not read whole.", "source")
	lagSeconds  = family.Gauge("reader_lag_seconds", "How long the oldest of these states has waited.", "source")
	faults      = family.Counter("errors_total", "Faults of the source.", "source")
	updates     = family.Counter("updates_total", "Updates that have been read, by operation.", "source", "op")
)

// Samples implements [metrics.Reporter]: the numbers of all sources, and of the reflectors behind
// API servers. name stands for s; the name of a reflector is name, a slash and that of its source.
// Sources of one name are shown as one, which is as well as the worst of them.
func (s *Sources) Samples(name string) iter.Seq[metrics.Sample] {
	return func(yield func(metrics.Sample) bool) {
		done := false
		select {
		case <-s.synced:
			done = true
		default:
		}
		if !yield(syncedAll.Of(metrics.Truth(done), name)) {
			return
		}
		for _, status := range joined(s.Status()) {
			for sample := range status.Samples(name) {
				if !yield(sample) {
					return
				}
			}
		}
	}
}

// Follow implements [metrics.Follower]: the changes of each source's newest state, read from
// Updates or not. The name of a copy is name, a slash and that of its source.
func (s *Sources) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Many(func() map[*feed]func() following.Changes {
		present := map[*feed]func() following.Changes{}
		for _, f := range s.list() {
			present[f] = func() following.Changes { return following.Snapshots(name+"/"+f.name, f.state) }
		}
		return present
	})
}

// Samples implements [metrics.Reporter] for one source; name stands for its [Sources]. Times are
// seconds since 1970, and left out if they are zero.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] {
	late := s.StaleAfter > 0 && time.Since(s.LastContact) > s.StaleAfter
	samples := []metrics.Sample{
		seen.Of(metrics.Truth(s.Seen), name, s.Source),
		optional.Of(metrics.Truth(s.Optional), name, s.Source),
		restored.Of(metrics.Truth(s.Restored), name, s.Source),
		stale.Of(metrics.Truth(late), name, s.Source),
		incomplete.Of(metrics.Truth(!s.whole()), name, s.Source),
		pods.Of(float64(s.Pods), name, s.Source),
		skipped.Of(float64(s.Skipped), name, s.Source),
		pending.Of(float64(s.Pending), name, s.Source),
		lagSeconds.Of(s.Lag.Seconds(), name, s.Source),
		faults.Of(float64(s.Errors), name, s.Source),
	}
	for _, op := range operations {
		samples = append(samples, updates.Of(float64(s.Updates[op]), name, s.Source, string(op)))
	}
	classes := map[string]int{}
	for _, problem := range s.Problems {
		classes[classOf(problem)]++
	}
	for class, n := range classes {
		samples = append(samples, problems.Of(float64(n), name, s.Source, class))
	}
	samples = lastContact.AppendTime(samples, s.LastContact, name, s.Source)
	samples = lastSet.AppendTime(samples, s.LastSet, name, s.Source)
	if s.Reflector != nil {
		samples = slices.AppendSeq(samples, s.Reflector.Samples(name+"/"+s.Source))
	}
	return slices.Values(samples)
}

// whole reports whether no problem hides a pod.
func (s Status) whole() bool { return len(s.Problems) == 0 || s.Complete }

// joined has one entry for each name, since two series of one name are an error of a whole scrape.
func joined(all []Status) []Status {
	var names []string
	byName := map[string][]Status{}
	for _, s := range all {
		if byName[s.Source] == nil {
			names = append(names, s.Source)
		}
		byName[s.Source] = append(byName[s.Source], s)
	}
	sums := make([]Status, 0, len(names))
	for _, name := range names {
		sums = append(sums, sum(byName[name]))
	}
	return sums
}

// sum is the Status of several sources of one name, of which there is at least one.
func sum(parts []Status) Status {
	total := parts[0]
	total.Updates = map[Op]int{}
	total.Problems, total.Complete = nil, true
	for i, part := range parts {
		for op, n := range part.Updates {
			total.Updates[op] += n
		}
		total.Problems = append(total.Problems, part.Problems...)
		total.Complete = total.Complete && part.whole()
		if i == 0 {
			continue
		}
		total.Optional = total.Optional && part.Optional
		total.Seen = total.Seen && part.Seen
		total.Restored = total.Restored || part.Restored
		total.Pods += part.Pods
		total.Skipped += part.Skipped
		total.Errors += part.Errors
		total.Pending += part.Pending
		total.Lag = max(total.Lag, part.Lag)
		if part.LastSet.Before(total.LastSet) {
			total.LastSet = part.LastSet
		}
		if part.expires().Before(total.expires()) {
			total.LastContact, total.StaleAfter = part.LastContact, part.StaleAfter
		}
	}
	total.Reflector = sumOfReflectors(parts)
	return total
}

// never is later than any time that a source can become stale.
var never = time.Unix(1<<40, 0)

// expires is when the state becomes stale.
func (s Status) expires() time.Time {
	if s.StaleAfter == 0 {
		return never
	}
	return s.LastContact.Add(s.StaleAfter)
}

func sumOfReflectors(parts []Status) *reflector.Status {
	parts = slices.DeleteFunc(slices.Clone(parts), func(s Status) bool { return s.Reflector == nil })
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0].Reflector
	}
	total := reflector.Sum(func(yield func(string, reflector.Status) bool) {
		for i, part := range parts {
			if !yield(cmp.Or(part.Source, "source")+"-"+strconv.Itoa(i+1), *part.Reflector) {
				return
			}
		}
	})
	return &total
}
