package relay

import (
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/watchcache"
)

// numbers are the values that a relay reports beside those of its copies.
type numbers struct {
	requests map[string]uint64 // by the road that they took
	copies   map[string]int    // by phase
	journals map[schema.GroupVersionResource]watchcache.JournalStatus
	refused  []schema.GroupVersionResource
}

var table = metrics.NewTable([]string{"server"},
	metrics.By("road", func(n numbers) map[string]uint64 { return n.requests },
		metrics.Counter("tributary_relay_requests_total", "Requests by road: copy, or upstream.", metrics.Itself[uint64])),
	metrics.By("phase", func(n numbers) map[string]int { return n.copies },
		metrics.Gauge("tributary_relay_copies", "Copies by phase: starting, serving, or refused by the upstream.", metrics.Itself[int])),
)

var journalTable = metrics.NewTable([]string{"server", "group", "resource", "version"},
	metrics.Gauge("tributary_relay_journal_bytes", "Length of the journal of a copy.", func(s watchcache.JournalStatus) int64 { return s.Bytes }),
	metrics.Gauge("tributary_relay_journal_failing", "1 while the journal of a copy cannot be written.", func(s watchcache.JournalStatus) bool { return s.Err != nil }),
)

var refusalTable = metrics.NewTable([]string{"server", "group", "resource", "version"},
	metrics.Gauge("tributary_relay_refused", "1 for a resource that clients read and that cannot be copied: its reads go to the upstream. The log says why.", metrics.Itself[bool]),
)

// uncopied is why a resource that clients read is not copied.
type uncopied struct {
	cause error
	at    time.Time // of the newest reader
}

// refusalAge is how long a refusal is shown after its newest reader.
const refusalAge = 10 * time.Minute

// noteRefusal takes in that a reader is passed on since its resource cannot be copied.
func (r *Relay) noteRefusal(resource schema.GroupVersionResource, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteRefusalLocked(resource, cause)
}

func (r *Relay) noteRefusalLocked(resource schema.GroupVersionResource, cause error) {
	old, known := r.refusals[resource]
	r.refusals[resource] = uncopied{cause, time.Now()}
	if !known || old.cause.Error() != cause.Error() {
		r.log.Error(cause, "A resource is not copied: its reads go to the upstream", "resource", resource.String())
	}
}

// refusalNotes are the lines of /readyz?verbose about resources that are not copied.
func (r *Relay) refusalNotes() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := map[string]string{}
	for resource, why := range r.refusals {
		if time.Since(why.at) > refusalAge {
			delete(r.refusals, resource)
			continue
		}
		lines[resource.GroupResource().String()] = "is not copied: " + why.cause.Error()
	}
	return lines
}

func (p phase) String() string {
	return [...]string{starting: "starting", serving: "serving", refused: "refused", ended: "ended"}[p]
}

func (r *Relay) numbers() numbers {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := numbers{
		requests: map[string]uint64{"copy": r.answered.Load(), "upstream": r.proxy.passed.Load()},
		copies:   map[string]int{starting.String(): 0, serving.String(): 0, refused.String(): 0},
		journals: map[schema.GroupVersionResource]watchcache.JournalStatus{},
	}
	for resource, why := range r.refusals {
		if time.Since(why.at) <= refusalAge {
			n.refused = append(n.refused, resource)
		}
	}
	for _, c := range r.copies {
		n.copies[c.phase.String()]++
		if c.filler == nil {
			continue
		}
		if status := c.filler.journal(); status.Path != "" {
			n.journals[c.resource] = status
		}
	}
	return n
}

// Samples implements [metrics.Reporter]: the numbers of the relay and of its copies. The name
// stands for the relay.
func (r *Relay) Samples(name string) iter.Seq[metrics.Sample] {
	n := r.numbers()
	all := slices.AppendSeq(table(n, name), r.edge.Samples(name))
	for resource, status := range n.journals {
		all = append(all, journalTable(status, name, resource.Group, resource.Resource, resource.Version)...)
	}
	for _, resource := range n.refused {
		all = append(all, refusalTable(true, name, resource.Group, resource.Resource, resource.Version)...)
	}
	return slices.Values(all)
}

// Causes implements [metrics.Explainer]: why copies are stale, and journals are not written.
func (r *Relay) Causes(name string) iter.Seq2[string, error] {
	causes := maps.Collect(r.edge.Causes(name))
	for resource, status := range r.numbers().journals {
		if copied := name + "/" + resource.GroupResource().String(); status.Err != nil && causes[copied] == nil {
			causes[copied] = status.Err
		}
	}
	return maps.All(causes)
}

// Follow implements [metrics.Follower] for all copies.
func (r *Relay) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return r.edge.Follow(name)
}
