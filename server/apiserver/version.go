package apiserver

import (
	"context"
	"iter"
	"net/http"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/store"
)

const fieldSelector = "fieldSelector"

// versionEndpoint serves the objects of another endpoint in a further version. Reads and deletions
// are those of the other endpoint, whose cache has the objects: they are converted when they are
// encoded. Other writes are those of a collection that is in this version.
type versionEndpoint[T store.Object] struct {
	*resourceEndpoint[T]
	writes *resourceEndpoint[store.Object]
	labels map[string]string // of fields
}

func newVersion[T store.Object](main *resourceEndpoint[T], c *collection.Collection[T], v collection.Version) *versionEndpoint[T] {
	written, err := c.In(v)
	if err != nil {
		panic(err) // the version is incomplete: a mistake in the program
	}
	reads := *main
	reads.scales, reads.view.Subresources = nil, nil
	reads.codec.served = v.Kind.GroupVersionKind()
	reads.codec.convert = func(obj T) store.Object { return v.To(obj) }
	reads.empty = v.Kind.Empty()
	var columns []Column[store.Object]
	for _, column := range main.view.Columns {
		columns = append(columns, Column[store.Object]{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: column.Description, Wide: column.Wide,
			Value: func(obj store.Object) any { return column.Value(v.From(obj).(T)) },
		})
	}
	writes := newEndpoint(written.Cache(), written, View[store.Object]{Columns: columns}, nil)
	writes.owner = main
	return &versionEndpoint[T]{resourceEndpoint: &reads, writes: writes, labels: v.Labels}
}

func (e *versionEndpoint[T]) serve(c call) error {
	if e.collection == nil || c.request.Method == http.MethodGet || c.request.Method == http.MethodDelete {
		if err := e.mapFields(&c); err != nil {
			return err
		}
		return e.resourceEndpoint.serve(c)
	}
	return e.writes.serve(c)
}

// mapFields names the fields of a selector as the stored version does.
func (e *versionEndpoint[T]) mapFields(c *call) error {
	query := c.request.URL.Query()
	given := query.Get(fieldSelector)
	if given == "" {
		return nil
	}
	selector, err := fields.ParseSelector(given)
	if err != nil {
		return nil // the reader of the request says so
	}
	selector, err = selector.Transform(func(label, value string) (string, string, error) {
		if stored, ok := e.labels[label]; ok {
			return stored, value, nil
		}
		if label == "metadata.name" || label == "metadata.namespace" {
			return label, value, nil
		}
		return "", "", apierror.BadRequest("field label not supported: %s", label)
	})
	if err != nil {
		return err
	}
	query.Set(fieldSelector, selector.String())
	c.request = c.request.Clone(c.request.Context())
	c.request.URL.RawQuery = query.Encode()
	return nil
}

// The objects are the other endpoint's: they are closed, counted and emptied once.

func (e *versionEndpoint[T]) begin(s *Server) { e.ended, e.stop = context.WithCancel(s.closed) }

func (e *versionEndpoint[T]) release() {}

func (e *versionEndpoint[T]) samples(string) iter.Seq[metrics.Sample] {
	return func(func(metrics.Sample) bool) {}
}

func (e *versionEndpoint[T]) follow(string) following.Changes {
	return func() iter.Seq[metrics.Change] { return func(func(metrics.Change) bool) {} }
}

func (e *versionEndpoint[T]) empties(context.Context, string, bool, *remains) error { return nil }
