package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Prefix is where a collection is stored: "/registry/pods/". kube-apiserver puts the resources of
// the core group under /registry/RESOURCE/, and custom resources under /registry/GROUP/RESOURCE/.
// The rest of a key is NAMESPACE/NAME, or NAME in cluster scope.
type Prefix string

// Source reads the collection under one prefix. It is a listwatch.ListerWatcher; [New] makes one.
// It is safe for concurrent use.
type Source[T store.Object] struct {
	client  *clientv3.Client
	prefix  string // of all keys that are read, with the namespace
	options options
	decoder *decoder[T]
	given   struct { // to New
		prefix  Prefix
		options []Option
	}
	fieldOf func(T) fields.Set
	labels  map[string]struct{} // the field labels that can be selected by

	cluster  atomic.Uint64 // the ID of the etcd cluster that was listed last; 0 before
	progress atomic.Int32  // whether servers may be asked for progress: a progressSupport
	asked    signal.Signal // of Progress
	small    atomic.Bool   // the last list had small values
	// locked is an encrypted value of the last list, or of a change since; nil if all was read.
	locked atomic.Pointer[encryptedError]
}

// New reads the objects under a prefix. O is their struct type:
//
//	etcd.New[corev1.Pod](client, "/registry/pods/")
//	etcd.New[unstructured.Unstructured](client, "/registry/example.com/widgets/")
//	etcd.New[metav1.PartialObjectMetadata](client, "/registry/configmaps/")
//
// Nothing is sent before a list or watch is ranged over. The client stays the caller's, to be
// closed after the last range. New panics if the client is nil or the prefix is empty.
func New[O any, T interface {
	*O
	store.Object
}](client *clientv3.Client, prefix Prefix, options ...Option) *Source[T] {
	return newSource(client, prefix, newDecoder[O, T](), options)
}

// NewFor is New for objects of which no Go type is known when the program is compiled. T is an
// interface, and empty makes an object to decode into.
func NewFor[T store.Object](client *clientv3.Client, prefix Prefix, empty func() T, options ...Option) *Source[T] {
	if empty == nil {
		panic("etcd: NewFor: nothing makes an empty object")
	}
	return newSource(client, prefix, decoderOf(empty), options)
}

// With is the source with further options, and with nothing that the source has learned.
func (s *Source[T]) With(options ...Option) *Source[T] {
	return newSource(s.client, s.given.prefix, decoderOf(s.decoder.new), slices.Concat(s.given.options, options))
}

func newSource[T store.Object](client *clientv3.Client, prefix Prefix, decoder *decoder[T], optionList []Option) *Source[T] {
	if client == nil {
		panic("etcd: New: the client is nil")
	}
	if prefix == "" {
		panic("etcd: New: the prefix is empty: give the keys' beginning, such as \"/registry/pods/\"")
	}
	o := options{progress: defaultProgress}
	if err := null.Options("etcd: New", optionList, func(option Option) { option(&o) }); err != nil {
		panic(err.Error())
	}
	s := &Source[T]{client: client, prefix: string(prefix), options: o, decoder: decoder, fieldOf: fieldsOf[T](o)}
	s.given.prefix, s.given.options = prefix, optionList
	if !strings.HasSuffix(s.prefix, "/") {
		s.prefix += "/" // /registry/pods is the beginning of /registry/podtemplates, too
	}
	if o.decrypt != nil {
		below := s.prefix
		s.decoder.decrypt = func(key string, value []byte) ([]byte, error) { return o.decrypt(client.Ctx(), below+key, value) }
	}
	secret := strings.HasSuffix(s.prefix, "/secrets/") || s.decoder.kind == "Secret"
	if !o.noSharing && !secret {
		s.decoder.share()
	}
	s.decoder.apiVersion = o.apiVersion
	s.decoder.convert = o.read
	if o.namespace != "" {
		s.prefix += o.namespace + "/"
	}
	s.labels = map[string]struct{}{nameField: {}, namespaceField: {}}
	for label := range s.fieldOf(decoder.new()) {
		s.labels[label] = struct{}{}
	}
	return s
}

// List implements listwatch.ListerWatcher. Without a version it is consistent: no write that was
// acknowledged before is missing. Version 0 asks the nearest member alone, which may be behind, and
// answers without a leader. Errors are as in the package's documentation; their text begins with
// "list" and the prefix.
func (s *Source[T]) List(ctx context.Context, options metav1.ListOptions) listwatch.List[T] {
	var meta metav1.ListMeta
	return listwatch.List[T]{
		Items: func(yield func(T, error) bool) {
			err := s.list(ctx, options, &meta, yield)
			if err != nil && !errors.Is(err, errStopped) {
				var none T
				yield(none, s.failure("list", err))
			}
		},
		Meta: func() metav1.ListMeta { return meta },
	}
}

// Watch implements listwatch.ListerWatcher, watches with sendInitialEvents included. It ends
// without an error after TimeoutSeconds.
func (s *Source[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return s.watchFor(ctx, options, nil)
}

func (s *Source[T]) watchFor(ctx context.Context, options metav1.ListOptions, held func(key string) (T, bool)) iter.Seq2[listwatch.Event[T], error] {
	return func(yield func(listwatch.Event[T], error) bool) {
		if err := s.watch(ctx, options, held, yield); err != nil && !errors.Is(err, errStopped) {
			yield(listwatch.Event[T]{}, s.failure("watch", err))
		}
	}
}

// Holding implements listwatch.Holder. A change shares what did not change with the object that
// held returns. Up to four goroutines call held at once.
func (s *Source[T]) Holding(held func(key string) (T, bool)) listwatch.ListerWatcher[T] {
	return holding[T]{s, held}
}

// holding is a source whose reader has a copy.
type holding[T store.Object] struct {
	*Source[T]
	held func(key string) (T, bool)
}

func (h holding[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return h.watchFor(ctx, options, h.held)
}

// Newest implements watchcache.Upstream: it is etcd's revision, read with a quorum. Errors are API
// status errors.
func (s *Source[T]) Newest(ctx context.Context) (string, error) {
	answer, err := s.client.Get(ctx, s.prefix) // there is no such key
	if err != nil {
		return "", StatusOf(ctx, err)
	}
	return strconv.FormatInt(answer.Header.Revision, 10), nil
}

// Progress implements watchcache.Upstream: it makes the watches under way that want bookmarks ask
// etcd how far it is, so that each sends a bookmark soon. It does not wait, and returns no
// versions. An etcd that may not be asked is not; see the package's documentation.
func (s *Source[T]) Progress(context.Context, string) (after, until string, err error) {
	s.asked.Broadcast()
	return "", "", nil
}

func (s *Source[T]) failure(op string, err error) error {
	return fmt.Errorf("%s %s: %w", op, s.prefix, err)
}

// errStopped: the consumer has left its loop.
var errStopped = errors.New("stopped")

// key is the store key of the object under an etcd key.
func (s *Source[T]) key(of []byte) string {
	key := strings.TrimPrefix(string(of), s.prefix)
	if s.options.namespace != "" {
		return store.Key(s.options.namespace, key)
	}
	return key
}

// sameCluster reports whether a watch was answered by the cluster from which the last whole list
// came. Another one is told once: the list that follows is of that one.
func (s *Source[T]) sameCluster(id uint64) bool {
	before := s.cluster.Swap(id)
	return before == 0 || before == id
}
