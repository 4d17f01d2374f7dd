package listwatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Option selects objects ([InNamespace], [Fields], [Labels]), or says how they are read (the rest).
// All options apply to [FromClient].
type Option interface{ apply(*options) }

// FuncsOption is an [Option] that applies to functions, too: see [FromFuncs] and [FromClientGo]. The
// namespace and the encoding are matters of the functions themselves.
type FuncsOption interface {
	Option
	ofFuncs()
}

// ReaderOption says what the reader of a source does: see [Project] and [ToClientGo]. Selection and
// decoding are matters of the source. [ReadOnly] makes one.
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
	json          bool
	noWatchList   bool
	noSharing     bool
	dropManaged   bool
	mutated       *mutationReport // a pointer, so that options can be compared
}

type mutationReport struct{ tell func(Mutation) }

// InNamespace keeps the objects of one namespace. Default, and empty: all namespaces, or cluster
// scope. Functions have their namespace built in: give [FromFuncs] a client of that namespace.
func InNamespace(namespace string) Option {
	return clientOption(func(o *options) { o.namespace = namespace })
}

// Fields keeps the objects that match a field selector, such as spec.nodeName of pods. The server decides which
// fields it knows. Default: all.
func Fields(selector fields.Selector) FuncsOption {
	return funcsOption(func(o *options) { o.fieldSelector = selector.String() })
}

// Labels keeps the objects that match a label selector. Default: all.
func Labels(selector labels.Selector) FuncsOption {
	return funcsOption(func(o *options) { o.labelSelector = selector.String() })
}

// WithJSON asks for JSON where the type could be had as protobuf, which is the default: JSON takes twice as
// long for a list of pods (docs/benchmarks.md). To look at traffic, or against a server whose protobuf is in doubt. It applies
// to [FromClient].
func WithJSON() Option {
	return clientOption(func(o *options) { o.json = true })
}

// WithoutSharing decodes every object into memory of its own. By default, parts of objects that are equal on the wire
// are decoded once and share memory, which leaves 0.3 of the heap of a list of pods (docs/benchmarks.md). For a program
// that modifies the objects it gets, against the rule, until it does so no longer. It applies to [FromClient].
func WithoutSharing() Option {
	return clientOption(func(o *options) { o.noSharing = true })
}

// DropManagedFields leaves metadata.managedFields out of every object: their bytes are passed over unread, which spares
// half of a typical pod. Default: objects come as the server has them. For readers that do not compute server-side apply; an
// object without them must not be written back with Update. It applies to [FromClient].
func DropManagedFields() Option {
	return clientOption(func(o *options) { o.dropManaged = true })
}

// WithMutationDetector finds who writes into an object that was read: objects are read-only and share memory, so that one
// such write shows in many of them. report is called once for each such object, by whoever ranges over a list or watch, and must
// not block. For tests: it keeps a copy of every object, and compares them all when a list or watch ends and some
// with each object that comes. Default, and nil: no one looks.
func WithMutationDetector(report func(Mutation)) FuncsOption {
	var r *mutationReport
	if report != nil {
		r = &mutationReport{report}
	}
	return funcsOption(func(o *options) { o.mutated = r })
}

// ReadOnly declares to [ToClientGo] and [Project] that their reader never writes into an object: it
// then gets objects that share memory, and no copies. Copies take twice the time of a list of pods,
// and six times the heap if the pods are much alike. Default: each object is copied, since
// client-go permits a transform to write. Say it if there is no transform, or if the function only
// reads.
func ReadOnly() ReaderOption {
	return readerOption(func(o *readerOptions) { o.readOnly = true })
}

// isReadOnly returns whether the reader has declared that it only reads.
func isReadOnly(list []ReaderOption) bool {
	var o readerOptions
	for _, option := range list {
		option.ofReader(&o)
	}
	return o.readOnly
}

// WithoutWatchList declares that this source does not answer a watch with sendInitialEvents (KEP-3157), so that a
// reflector lists at once in place of finding out, which takes half a second with client-go's fake
// clientsets.
func WithoutWatchList() FuncsOption {
	return funcsOption(func(o *options) { o.noWatchList = true })
}

func apply[O Option](list []O) (o options) {
	for _, option := range list {
		option.apply(&o)
	}
	return o
}

// narrow adds the selectors to the options of one request.
func (o options) narrow(request metav1.ListOptions) metav1.ListOptions {
	if o.fieldSelector != "" {
		request.FieldSelector = o.fieldSelector
	}
	if o.labelSelector != "" {
		request.LabelSelector = o.labelSelector
	}
	return request
}
