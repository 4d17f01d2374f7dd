package builtin

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// eventsV1 is the version of events that client-go's newer recorder writes. They are stored in the
// core version.
var eventsV1 = collection.Version{
	Kind: watchcache.Kind[store.Object]{
		Group: eventsv1.GroupName, Version: "v1", New: func() store.Object { return &eventsv1.Event{} },
	},
	To:   func(stored store.Object) store.Object { return newEvent(stored.(*corev1.Event)) },
	From: func(obj store.Object) store.Object { return coreEvent(obj.(*eventsv1.Event)) },
	Labels: map[string]string{
		"reason": "reason", "type": "type", "reportingController": "reportingComponent",
		"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
		"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
		"regarding.apiVersion": "involvedObject.apiVersion", "regarding.resourceVersion": "involvedObject.resourceVersion",
		"regarding.fieldPath": "involvedObject.fieldPath",
	},
}

func newEvent(e *corev1.Event) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, Series: (*eventsv1.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason,
		Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type, DeprecatedSource: e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
	}
}

func coreEvent(e *eventsv1.Event) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, Series: (*corev1.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason,
		InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type, Source: e.DeprecatedSource,
		FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
	}
}
