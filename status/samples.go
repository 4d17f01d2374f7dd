package status

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

// table is the copies in the making, by name.
type table map[string]*Copy

func (t table) copy(name string) *Copy {
	c := t[name]
	if c == nil {
		c = &Copy{Name: name}
		t[name] = c
	}
	return c
}

func (c *Copy) reader(name string) *Reader {
	i := slices.IndexFunc(c.Readers, func(r Reader) bool { return r.Name == name })
	if i < 0 {
		i = len(c.Readers)
		c.Readers = append(c.Readers, Reader{Name: name})
	}
	return &c.Readers[i]
}

// The kinds of copies.
const (
	kindReflector = "reflector"
	kindInformer  = "informer"
	kindSource    = "source"
	kindCache     = "watch cache"
	kindRefs      = "references"
)

// watchers is the name of all watchers of a watch cache.
const watchers = "watchers"

// families name, by the beginning of a metric's name, the part that the number is of.
var families = []struct {
	prefix, kind string
	labels       int // that a sample about one copy has at least
	take         func(c *Copy, metric string, s metrics.Sample)
}{
	{"tributary_reflector_", kindReflector, 1, (*Copy).reflector},
	{"tributary_informer_", kindInformer, 1, (*Copy).informer},
	{"tributary_sources_", kindSource, 2, (*Copy).source},
	{"tributary_refs_", kindRefs, 1, (*Copy).references},
	{"tributary_watch_cache_", kindCache, 3, (*Copy).cache},
	{"tributary_apiserver_", kindCache, 3, (*Copy).cache},
	{"apiserver_", kindCache, 3, (*Copy).cache},
}

// add takes a sample, and returns its copy. Metrics that the page does not show are passed over.
func (t table) add(s metrics.Sample) *Copy {
	for _, f := range families {
		metric, ok := strings.CutPrefix(s.Metric.Name, f.prefix)
		if !ok || len(s.Labels) < f.labels {
			continue
		}
		name := s.Labels[0]
		switch f.kind {
		case kindSource:
			name += "/" + s.Labels[1]
		case kindCache: // server, group and resource
			name += "/" + schema.GroupResource{Group: s.Labels[1], Resource: s.Labels[2]}.String()
		}
		c := t.copy(name)
		if f.kind != kindReflector || c.Kind == "" {
			c.Kind = f.kind // an informer and a source have the numbers of their reflectors, too
		}
		f.take(c, metric, s)
		return c
	}
	return nil
}

func (c *Copy) reflector(name string, s metrics.Sample) {
	c.reflected = true
	switch name {
	case "synced":
		c.synced = s.Value > 0
	case "not_right":
		c.verdict(s.Labels[1])
	case "proven_timestamp_seconds":
		c.ProvenAt = timeOf(s)
	case "failing":
		c.show(s.Labels[1])
	case "last_contact_timestamp_seconds":
		c.LastContact = timeOf(s)
	case "last_event_timestamp_seconds":
		c.LastEvent = timeOf(s)
	case "retry_timestamp_seconds":
		c.RetryAt = timeOf(s)
	case "failing_since_timestamp_seconds":
		c.since = timeOf(s)
	case "events_total":
		c.Events = int(s.Value)
	case "received_bytes_total":
		c.ReceivedBytes = uint64(s.Value)
	case "shared_bytes_total":
		c.SharedBytes = uint64(s.Value)
	}
}

func (c *Copy) informer(name string, s metrics.Sample) {
	switch name {
	case "objects":
		c.Objects = int(s.Value)
	case "drift_objects":
		drift := int(s.Value)
		if c.Drift = &drift; drift > 0 {
			c.verdict(string(reflector.Drift))
		}
	case "handler_lag_events":
		c.reader(s.Labels[1]).Behind = int(s.Value)
	case "handler_lag_seconds":
		c.reader(s.Labels[1]).LagSeconds = s.Value
	case "handlers_failed":
		c.reader(s.Labels[1]).Failed = s.Value > 0
	}
}

func (c *Copy) source(name string, s metrics.Sample) {
	const reader = "Updates"
	switch name {
	case "seen":
		c.synced = s.Value > 0
	case "not_right":
		c.verdict(s.Labels[2])
	case "restored":
		c.restored = s.Value > 0
	case "stale":
		c.stale = s.Value > 0
	case "problems":
		c.show(s.Labels[2])
	case "pods":
		c.Objects = int(s.Value)
	case "last_contact_timestamp_seconds":
		c.LastContact = timeOf(s)
	case "last_set_timestamp_seconds":
		c.LastEvent = timeOf(s)
	case "reader_pending_states":
		c.reader(reader).Behind = int(s.Value)
	case "reader_lag_seconds":
		c.reader(reader).LagSeconds = s.Value
	case "updates_total":
		c.Events += int(s.Value)
	}
}

// references takes a number of objects that are followed by name.
func (c *Copy) references(name string, s metrics.Sample) {
	switch name {
	case "synced":
		c.synced = s.Value > 0
	case "not_right":
		if c.verdict(s.Labels[1]); stateOf(s.Labels[1]) == Syncing {
			c.synced = false // some names are read for the first time, or anew
		} else {
			c.show(s.Labels[1])
		}
	case "objects":
		c.Objects = int(s.Value)
	case "names":
		c.Names = int(s.Value)
	case "watches":
		c.Watches = int(s.Value)
	case "last_contact_timestamp_seconds":
		c.LastContact, c.ProvenAt = timeOf(s), timeOf(s)
	case "events_total":
		c.Events = int(s.Value)
	case "received_bytes_total":
		c.ReceivedBytes = uint64(s.Value)
	}
}

// cache takes a number of a watch cache, or of the server that serves it.
func (c *Copy) cache(name string, s metrics.Sample) {
	switch name {
	case "watch_cache_resource_version": // 0 before the first list
		c.synced = s.Value > 0
	case "watch_cache_events_received_total":
		c.Events = int(s.Value)
	case "objects":
		c.Objects = int(s.Value)
	case "bytes", "encoding_bytes":
		c.HistoryBytes += uint64(s.Value)
	case "watchers":
		c.reader(watchers).Count = int(s.Value)
	case "delivery_lag_seconds_count":
		if s.Labels[3] == "take" {
			c.delivered = s.Value
		}
	case "delivery_lag_seconds_sum":
		if s.Labels[3] == "take" {
			c.waited = s.Value
		}
	case "terminated_watchers_total":
		c.CutWatchers = int(s.Value)
	case "failing":
		c.show(s.Labels[3])
	case "not_right":
		c.verdict(s.Labels[3])
	case "proven_timestamp_seconds":
		c.ProvenAt = timeOf(s)
	case "stale_since_timestamp_seconds":
		c.since = timeOf(s)
	}
}

// verdict takes in the class of a verdict. A source has its own, and that of its reflector: the
// worst one counts.
func (c *Copy) verdict(class string) {
	if worse(stateOf(class), stateOf(c.NotRight)) {
		c.NotRight = class
	}
}

// show takes in the class of a problem.
func (c *Copy) show(class string) {
	if !slices.Contains(c.Classes, class) {
		c.Classes = append(c.Classes, class)
	}
}

func timeOf(s metrics.Sample) time.Time { return time.UnixMilli(int64(s.Value * 1000)).UTC() }
