package status

import (
	"fmt"
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
	kindLoop      = "controller"
	kindUnknown   = "unknown"
)

// watchers is the name of all watchers of a watch cache.
const watchers = "watchers"

// takes is what a copy takes of the samples of a family, by the rest of a metric's name. Metrics
// that the page does not show are not in it.
type takes map[string]func(*Copy, metrics.Sample)

// families name, by the beginning of a metric's name, the part that the number is of.
var families = []struct {
	prefix, kind string
	labels       int // that a sample about one copy has at least
	takes        takes
}{
	{"tributary_reflector_", kindReflector, 1, ofReflector},
	{"tributary_informer_", kindInformer, 1, ofInformer},
	{"tributary_sources_", kindSource, 2, ofSource},
	{"tributary_refs_", kindRefs, 1, ofRefs},
	{"tributary_controller_", kindLoop, 1, ofLoop},
	{"tributary_watch_cache_", kindCache, 3, ofCache},
	{"tributary_apiserver_", kindCache, 3, ofCache},
	{"apiserver_", kindCache, 3, ofCache},
}

// add takes a sample, and returns its copy.
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
		if c.reflected = c.reflected || f.kind == kindReflector; f.kind != kindReflector || c.Kind == "" {
			c.Kind = f.kind // an informer and a source have the numbers of their reflectors, too
		}
		if take := f.takes[metric]; take != nil {
			take(c, s)
		}
		return c
	}
	return nil
}

// unknown shows a reporter of whose metrics the page knows none.
func (t table) unknown(one *tracked) {
	c := t.copy(one.name)
	c.Kind = kindUnknown
	c.show("unknown")
	c.Causes = append(c.Causes, fmt.Sprintf("the page does not know the metrics of a %T: track parts of this library", one.reporter))
}

var ofReflector = takes{
	"synced":                          flag(func(c *Copy) *bool { return &c.synced }),
	"not_right":                       func(c *Copy, s metrics.Sample) { c.verdict(s.Labels[1]) },
	"failing":                         func(c *Copy, s metrics.Sample) { c.show(s.Labels[1]) },
	"proven_timestamp_seconds":        instant(func(c *Copy) *time.Time { return &c.ProvenAt }),
	"last_contact_timestamp_seconds":  instant(func(c *Copy) *time.Time { return &c.LastContact }),
	"last_event_timestamp_seconds":    instant(func(c *Copy) *time.Time { return &c.LastEvent }),
	"retry_timestamp_seconds":         instant(func(c *Copy) *time.Time { return &c.RetryAt }),
	"failing_since_timestamp_seconds": instant(func(c *Copy) *time.Time { return &c.since }),
	"events_total":                    number(func(c *Copy) *int { return &c.Events }),
	"received_bytes_total":            number(func(c *Copy) *uint64 { return &c.ReceivedBytes }),
	"shared_bytes_total":              number(func(c *Copy) *uint64 { return &c.SharedBytes }),
}

var ofInformer = takes{
	"objects": number(func(c *Copy) *int { return &c.Objects }),
	"drift_objects": func(c *Copy, s metrics.Sample) {
		drift := int(s.Value)
		if c.Drift = &drift; drift > 0 {
			c.verdict(string(reflector.Drift))
		}
	},
	"handler_lag_events":  func(c *Copy, s metrics.Sample) { c.reader(s.Labels[1]).Behind = int(s.Value) },
	"handler_lag_seconds": func(c *Copy, s metrics.Sample) { c.reader(s.Labels[1]).LagSeconds = s.Value },
	"handlers_failed":     func(c *Copy, s metrics.Sample) { c.reader(s.Labels[1]).Failed = s.Value > 0 },
}

var ofSource = takes{
	"seen":                           flag(func(c *Copy) *bool { return &c.synced }),
	"restored":                       flag(func(c *Copy) *bool { return &c.restored }),
	"stale":                          flag(func(c *Copy) *bool { return &c.stale }),
	"not_right":                      func(c *Copy, s metrics.Sample) { c.verdict(s.Labels[2]) },
	"problems":                       func(c *Copy, s metrics.Sample) { c.show(s.Labels[2]) },
	"pods":                           number(func(c *Copy) *int { return &c.Objects }),
	"last_contact_timestamp_seconds": instant(func(c *Copy) *time.Time { return &c.LastContact }),
	"last_set_timestamp_seconds":     instant(func(c *Copy) *time.Time { return &c.LastEvent }),
	"reader_pending_states":          func(c *Copy, s metrics.Sample) { c.reader("Updates").Behind = int(s.Value) },
	"reader_lag_seconds":             func(c *Copy, s metrics.Sample) { c.reader("Updates").LagSeconds = s.Value },
	"updates_total":                  func(c *Copy, s metrics.Sample) { c.Events += int(s.Value) },
}

// ofRefs has the numbers of objects that are followed by name.
var ofRefs = takes{
	"synced": flag(func(c *Copy) *bool { return &c.synced }),
	"not_right": func(c *Copy, s metrics.Sample) {
		if c.verdict(s.Labels[1]); stateOf(s.Labels[1]) == Syncing {
			c.synced = false // some names are read for the first time, or anew
		} else {
			c.show(s.Labels[1])
		}
	},
	"objects":                        number(func(c *Copy) *int { return &c.Objects }),
	"names":                          number(func(c *Copy) *int { return &c.Names }),
	"watches":                        number(func(c *Copy) *int { return &c.Watches }),
	"last_contact_timestamp_seconds": func(c *Copy, s metrics.Sample) { c.LastContact, c.ProvenAt = timeOf(s), timeOf(s) },
	"events_total":                   number(func(c *Copy) *int { return &c.Events }),
	"received_bytes_total":           number(func(c *Copy) *uint64 { return &c.ReceivedBytes }),
}

// ofCache has the numbers of a watch cache, and of the server that serves it. Its version is 0
// before the first list.
var ofCache = takes{
	"watch_cache_resource_version":      flag(func(c *Copy) *bool { return &c.synced }),
	"watch_cache_events_received_total": number(func(c *Copy) *int { return &c.Events }),
	"objects":                           number(func(c *Copy) *int { return &c.Objects }),
	"bytes":                             func(c *Copy, s metrics.Sample) { c.HistoryBytes += uint64(s.Value) },
	"encoding_bytes":                    func(c *Copy, s metrics.Sample) { c.HistoryBytes += uint64(s.Value) },
	"watchers":                          func(c *Copy, s metrics.Sample) { c.reader(watchers).Count = int(s.Value) },
	"delivery_lag_seconds_count":        taken(func(c *Copy) *float64 { return &c.delivered }),
	"delivery_lag_seconds_sum":          taken(func(c *Copy) *float64 { return &c.waited }),
	"terminated_watchers_total":         number(func(c *Copy) *int { return &c.CutWatchers }),
	"failing":                           func(c *Copy, s metrics.Sample) { c.show(s.Labels[3]) },
	"not_right":                         func(c *Copy, s metrics.Sample) { c.verdict(s.Labels[3]) },
	"proven_timestamp_seconds":          instant(func(c *Copy) *time.Time { return &c.ProvenAt }),
	"stale_since_timestamp_seconds":     instant(func(c *Copy) *time.Time { return &c.since }),
}

// ofLoop has the numbers of a controller. Its readers are the lanes of its queue.
var ofLoop = takes{
	"working":   flag(func(c *Copy) *bool { return &c.synced }),
	"not_right": func(c *Copy, s metrics.Sample) { c.verdict(s.Labels[1]) },
	"failing_keys": func(c *Copy, s metrics.Sample) {
		if s.Value > 0 {
			c.show("key_failing")
		}
	},
	"keys":           func(c *Copy, s metrics.Sample) { c.reader(lanes[s.Labels[1]]).Behind = int(s.Value) },
	"oldest_seconds": func(c *Copy, s metrics.Sample) { c.reader(lanes[s.Labels[1]]).LagSeconds = s.Value },
	"calls_total":    func(c *Copy, s metrics.Sample) { c.Events += int(s.Value) },
}

// lanes name the lanes of a controller's queue.
var lanes = map[string]string{"urgent": "keys with a change", "patient": "keys of a full pass"}

func flag(of func(*Copy) *bool) func(*Copy, metrics.Sample) {
	return func(c *Copy, s metrics.Sample) { *of(c) = s.Value > 0 }
}

func number[N int | uint64 | float64](of func(*Copy) *N) func(*Copy, metrics.Sample) {
	return func(c *Copy, s metrics.Sample) { *of(c) = N(s.Value) }
}

func instant(of func(*Copy) *time.Time) func(*Copy, metrics.Sample) {
	return func(c *Copy, s metrics.Sample) { *of(c) = timeOf(s) }
}

// taken is number for the step at which a watcher takes an event.
func taken(of func(*Copy) *float64) func(*Copy, metrics.Sample) {
	return func(c *Copy, s metrics.Sample) {
		if s.Labels[3] == "take" {
			*of(c) = s.Value
		}
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
