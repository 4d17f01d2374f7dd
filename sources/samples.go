package sources

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/tributary-go/tributary/internal/age"
	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

var (
	ofAll = metrics.NewTable([]string{"sources"},
		metrics.Gauge("tributary_sources_synced", "1 once the first state of every required source has been read.", metrics.Itself[bool]))
	table = metrics.NewTable([]string{"sources", "source"},
		metrics.Gauge("tributary_sources_seen", "1 once the first state of the source has been read.", func(s Status) bool { return s.Seen }),
		metrics.Gauge("tributary_sources_optional", "1 if the source is not needed for readiness.", func(s Status) bool { return s.Optional }),
		metrics.Gauge("tributary_sources_restored", "1 while the state is a checkpoint's.", func(s Status) bool { return s.Restored }),
		metrics.By("class", Status.notRight,
			metrics.Gauge("tributary_sources_not_right", "1 while the state is not right, whatever the age of its proof; the class says why.", metrics.Itself[bool])),
		metrics.Gauge("tributary_sources_stale", "1 while the state's proof is older than the source permits.", func(s Status) bool { return age.Of(s.expires()) > 0 }),
		metrics.Gauge("tributary_sources_incomplete", "1 while a problem may hide a pod.", func(s Status) bool { return !s.whole() }),
		metrics.Gauge("tributary_sources_doubted", "1 while the answers of the source prove nothing.", func(s Status) bool { return s.Doubt != nil }),
		metrics.Gauge("tributary_sources_proven_timestamp_seconds", "When an answer of the source was a proof last.", func(s Status) time.Time { return s.ProvenAt }),
		metrics.By("class", Status.classes,
			metrics.Gauge("tributary_sources_problems", "Present problems of a class.", metrics.Itself[int])),
		metrics.By("class", Status.warned,
			metrics.Gauge("tributary_sources_warnings", "Present remarks of a class that hide no pod.", metrics.Itself[int])),
		metrics.Gauge("tributary_sources_pods", "Pods in the newest state.", func(s Status) int { return s.Pods }),
		metrics.Gauge("tributary_sources_skipped_files", "Files that are ignored for their names.", func(s Status) int { return s.Skipped }),
		metrics.Gauge("tributary_sources_last_contact_timestamp_seconds", "When the file, URL or server was last read or heard.", func(s Status) time.Time { return s.LastContact }),
		metrics.Gauge("tributary_sources_last_set_timestamp_seconds", "When the source last set a state.", func(s Status) time.Time { return s.LastSet }),
		metrics.Gauge("tributary_sources_reader_pending_states", "States that the reader of updates has not read whole.", func(s Status) int { return s.Pending }),
		metrics.Gauge("tributary_sources_reader_lag_seconds", "How long the oldest of these states has waited.", func(s Status) time.Duration { return s.Lag }),
		metrics.Counter("tributary_sources_missed_pods_total", "Pods that came and went while the reader of updates was late.", func(s Status) int { return s.Missed }),
		metrics.Counter("tributary_sources_errors_total", "Faults of the source.", func(s Status) int { return s.Errors }),
		metrics.By("op", Status.updates,
			metrics.Counter("tributary_sources_updates_total", "Updates that have been read, by operation.", metrics.Itself[int])),
	)
)

// classes counts the problems of each class.
func (s Status) classes() map[string]int { return countClasses(s.Problems) }

// warned counts the warnings of each class.
func (s Status) warned() map[string]int { return countClasses(s.Warnings) }

func countClasses(all []error) map[string]int {
	classes := map[string]int{}
	for _, err := range all {
		classes[classOf(err)]++
	}
	return classes
}

// notRight has the class of the verdict, unless it is good.
func (s Status) notRight() map[string]bool {
	if v := s.Verdict(0); v.Err != nil {
		return map[string]bool{string(v.Class): true}
	}
	return nil
}

// updates has a count for each operation, those that never were too.
func (s Status) updates() map[string]int {
	counts := map[string]int{}
	for _, op := range operations {
		counts[string(op)] = s.Updates[op]
	}
	return counts
}

// Samples implements [metrics.Reporter]: the numbers of all sources, and of the reflectors behind
// API servers. name stands for s; the name of a reflector is name, a slash and that of its source.
// Sources of one name are shown as one, which is as well as the worst of them.
func (s *Sources) Samples(name string) iter.Seq[metrics.Sample] {
	done := false
	select {
	case <-s.synced:
		done = true
	default:
	}
	all := ofAll(done, name)
	for _, status := range joined(s.Status()) {
		all = slices.AppendSeq(all, status.Samples(name))
	}
	return slices.Values(all)
}

// Follow implements [metrics.Follower]: the changes of each source's newest state, read from
// Updates or not. The name of a copy is name, a slash and that of its source.
func (s *Sources) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Many(func() map[*feed]func() following.Changes {
		present := map[*feed]func() following.Changes{}
		for _, f := range s.list() {
			present[f] = func() following.Changes {
				return following.Snapshots(name+"/"+f.name, func() string { return "pods" }, f.state)
			}
		}
		return present
	})
}

// Samples implements [metrics.Reporter] for one source; name stands for its [Sources]. Times are
// seconds since 1970, and left out if they are zero.
func (s Status) Samples(name string) iter.Seq[metrics.Sample] {
	all := table(s, name, s.Source)
	if s.Reflector != nil {
		all = slices.AppendSeq(all, s.Reflector.Samples(name+"/"+s.Source))
	}
	return slices.Values(all)
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
	total.Updates, total.Missed = map[Op]int{}, 0
	total.Problems, total.Warnings, total.Complete = nil, nil, true
	oldest := slices.MinFunc(parts, func(a, b Status) int {
		return cmp.Or(a.expires().Compare(b.expires()), a.LastContact.Compare(b.LastContact))
	})
	total.LastContact, total.StaleAfter = oldest.LastContact, oldest.StaleAfter
	total.ProvenAt, total.Doubt = doubtOf(parts)
	for i, part := range parts {
		total.Missed += part.Missed
		for op, n := range part.Updates {
			total.Updates[op] += n
		}
		total.Problems, total.Warnings = append(total.Problems, part.Problems...), append(total.Warnings, part.Warnings...)
		total.Complete = total.Complete && part.whole()
		if i == 0 {
			continue
		}
		total.Optional = total.Optional && part.Optional
		total.Phase = worse(total.Phase, part.Phase)
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
	}
	total.Reflector = sumOfReflectors(parts)
	return total
}

// worse is the phase that is farther from following.
func worse(a, b reflector.Phase) reflector.Phase {
	order := []reflector.Phase{reflector.Watching, reflector.Idle, reflector.Stopped}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// never is later than any time that a source can become stale.
var never = time.Unix(1<<40, 0)

// expires is when the state becomes stale.
func (s Status) expires() time.Time {
	switch {
	case s.StaleAfter == 0:
		return never
	case s.Reflector != nil && s.Reflector.ProvenAt.IsZero(), s.Doubt != nil && s.ProvenAt.IsZero():
		return never // it is not right for another reason
	case s.Reflector != nil:
		return s.Reflector.ProvenAt.Add(s.StaleAfter)
	}
	return s.proof().Add(s.StaleAfter)
}

// doubtOf is the doubt of the part that was proven first, or never.
func doubtOf(parts []Status) (provenAt time.Time, doubt error) {
	for _, part := range parts {
		if part.Doubt != nil && (doubt == nil || part.ProvenAt.Before(provenAt)) {
			doubt, provenAt = part.Doubt, part.ProvenAt
		}
	}
	return provenAt, doubt
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
