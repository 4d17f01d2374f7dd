package listwatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/null"
)

// Option selects objects ([InNamespace], [Fields], [Labels], [Shard]), or sets how they are read
// (all others). All options apply to [FromClient].
type Option interface{ apply(*options) }

// FuncsOption is an [Option] that also applies to functions: see [FromFuncs] and [FromClientGo].
// The functions themselves determine namespace and encoding.
type FuncsOption interface {
	Option
	ofFuncs()
}

// ReaderOption describes the reader of a source: see [Project] and [ToClientGo]. The source has the
// options of selection and decoding. [ReadOnly] makes one.
type ReaderOption interface{ ofReader(*readerOptions) }

type clientOption func(*options)

func (f clientOption) apply(o *options) { f(o) }

type funcsOption func(*options)

func (f funcsOption) apply(o *options) { f(o) }
func (funcsOption) ofFuncs()           {}

type readerOption func(*readerOptions)

func (f readerOption) ofReader(o *readerOptions) { f(o) }

type readerOptions struct{ readOnly bool }

type options struct {
	namespace     string
	fieldSelector string
	labelSelector string
	shardSelector string
	shard         *shard // parsed; one for each value of the option
	json          bool
	noWatchList   bool
	asClientGo    bool
	noSharing     bool
	dropManaged   bool
	mutated       *mutationReport // a pointer, so that options are comparable
}

type mutationReport struct{ tell func(Mutation) }

// InNamespace selects the objects of one namespace. Default, and empty: all namespaces, or cluster
// scope. Functions have their own namespace: give [FromFuncs] a client of that namespace.
func InNamespace(namespace string) Option {
	return clientOption(func(o *options) { o.namespace = namespace })
}

// Fields selects the objects that match a field selector, such as spec.nodeName of pods. The server
// decides which fields it knows. Default: all objects.
func Fields(selector fields.Selector) FuncsOption {
	if null.Is(selector) {
		panic("listwatch: Fields: the selector is nil: leave the option out")
	}
	return funcsOption(func(o *options) { o.fieldSelector = selector.String() })
}

// Labels selects the objects that match a label selector. Default: all objects.
func Labels(selector labels.Selector) FuncsOption {
	if null.Is(selector) {
		panic("listwatch: Labels: the selector is nil: leave the option out")
	}
	return funcsOption(func(o *options) { o.labelSelector = selector.String() })
}

// The options of the adapters to client-go have no exported names: see their package.
func init() {
	adapters.AsClientGo = funcsOption(func(o *options) { o.asClientGo = true })
	adapters.Pass = func(source any) {
		if passing, ok := source.(interface{ passes() }); ok {
			passing.passes()
		}
	}
	adapters.Shard = func(selector string) any { return shardOption(selector) }
	adapters.Narrow = func(labelSelector, fieldSelector string) any {
		return funcsOption(func(o *options) {
			o.labelSelector, o.fieldSelector = both(o.labelSelector, labelSelector), both(o.fieldSelector, fieldSelector)
			if sorted, err := labels.Parse(o.labelSelector); err == nil {
				o.labelSelector = sorted.String()
			}
		})
	}
}

// both selects the objects of both selectors.
func both(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + "," + b
}

// WithJSON requests JSON even if the type supports protobuf, which is the default. JSON takes twice
// as long for a list of pods (docs/makers/benchmarks.md). Use it to look at traffic, or against
// a server whose protobuf is in doubt. It applies to [FromClient].
func WithJSON() Option {
	return clientOption(func(o *options) { o.json = true })
}

// WithoutSharing decodes every object into memory of its own. By default, parts that are equal on
// the wire are decoded once and share memory. That leaves 0.3 of the heap of a list of pods
// (docs/makers/benchmarks.md).
//
// It is for a program that modifies its objects, against the rule, until it is mended. It applies
// to [FromClient].
func WithoutSharing() Option {
	return clientOption(func(o *options) { o.noSharing = true })
}

// DropManagedFields omits metadata.managedFields from every object: their bytes, half of a typical
// pod, are skipped without decoding. A server that can is asked not to send them (KEP-5958, alpha
// in Kubernetes 1.38). Default: objects have all that the server sent.
//
// It is for readers that do not compute server-side apply. An object without them must not be
// written back with Update. It applies to [FromClient].
func DropManagedFields() Option {
	return clientOption(func(o *options) { o.dropManaged = true })
}

// WithMutationDetector finds writes into objects that were read. Objects are read-only and share
// memory, so one such write shows in many of them. report is called once for each object, on a
// goroutine that ranges over a list or watch, and must not block.
//
// It is for tests. It keeps a copy of every object: it compares all of them when a list or watch
// ends, and some whenever an object comes. Default, and nil: no detector.
func WithMutationDetector(report func(Mutation)) FuncsOption {
	var r *mutationReport
	if report != nil {
		r = &mutationReport{report}
	}
	return funcsOption(func(o *options) { o.mutated = r })
}

// ReadOnly declares to [ToClientGo] and [Project] that their reader never writes into an object.
// The reader then gets objects that share memory, and no copies. Copies take twice the time of a
// list of pods, and six times the heap if the pods are much alike.
//
// Default: each object is copied, since client-go permits a transform to write. Use ReadOnly if
// there is no transform, or if the function only reads.
func ReadOnly() ReaderOption {
	return readerOption(func(o *readerOptions) { o.readOnly = true })
}

// isReadOnly is for the function op, and panics if an option is nil.
func isReadOnly(op string, list []ReaderOption) bool {
	var o readerOptions
	if err := null.Options("listwatch: "+op, list, func(option ReaderOption) { option.ofReader(&o) }); err != nil {
		panic(err.Error())
	}
	return o.readOnly
}

// WithoutWatchList declares that this source does not answer a watch with sendInitialEvents
// (KEP-3157). So a reflector lists at once, without an attempt that takes half a second with
// client-go's fake clientsets.
func WithoutWatchList() FuncsOption {
	return funcsOption(func(o *options) { o.noWatchList = true })
}

// apply is for the function op, and panics if an option is nil.
func apply[O Option](op string, list []O) (o options) {
	if err := null.Options("listwatch: "+op, list, func(option O) { option.apply(&o) }); err != nil {
		panic(err.Error())
	}
	return o
}

func (o options) narrow(request metav1.ListOptions) metav1.ListOptions {
	if o.fieldSelector != "" {
		request.FieldSelector = o.fieldSelector
	}
	if o.labelSelector != "" {
		request.LabelSelector = o.labelSelector
	}
	return request
}
