package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Collection is a collection that etcd keeps. It is written here by the rules of
// collection.Collection, and by any other program that writes below the same prefix, such as a
// second server. Its readers have a cache, which [Collection.Run] keeps equal to etcd.
//
// A write is decided on the object in etcd, and is made if that object has not changed meanwhile;
// else it is decided again. It returns once this collection's cache shows it, or after three
// seconds. A write may have been made although its answer is lost: its error is a 5xx, and it is
// not repeated.
type Collection[T store.Object] struct {
	*collection.Collection[T]
	source    *etcd.Source[T]
	reflector *reflector.Reflector[T]
}

// New makes a collection of the objects that a source reads. There may be some already:
//
//	resource := builtin.Pods()
//	pods, err := origin.New(etcd.New[corev1.Pod](client, "/registry/pods/"), resource.Kind, resource.Rules)
//	if err != nil { … }
//	apiserver.ServeCollection(server, pods.Collection, resource.View, apiserver.FilledBy(pods))
//	err = pods.Run(ctx) // until ctx ends
//
// Objects of another version than the kind's are refused. Types with generated code are stored in
// protobuf, documents in JSON, as kube-apiserver stores them. It fails on a source of one
// namespace, and as collection.New does.
func New[T store.Object](
	source *etcd.Source[T], kind watchcache.Kind[T], rules collection.Rules[T], options ...watchcache.Option,
) (*Collection[T], error) {
	if namespace := source.Namespace(); namespace != "" {
		return nil, fmt.Errorf("origin: New: the source reads the namespace %s alone: leave out InNamespace", namespace)
	}
	source = source.With(etcd.WithAPIVersion(kind.GroupVersionKind().GroupVersion().String()))
	cache, err := watchcache.NewCache(kind, append(slices.Clone(options), watchcache.WithUpstream(source))...)
	if err != nil {
		return nil, err
	}
	c := &Collection[T]{source: source, reflector: reflector.New[T](source, cache)}
	c.Collection, err = collection.On(cache, rules, collection.Storage[T](&storage[T]{
		source: source, cache: cache, leases: &leases{client: source.Client(), expiry: source.Expiry()},
	}))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Run keeps the cache equal to etcd until ctx ends. It is called once.
func (c *Collection[T]) Run(ctx context.Context) error { return c.reflector.Run(ctx) }

// WaitSynced returns once the cache holds a whole state. Errors are those of reflector.WaitSynced.
func (c *Collection[T]) WaitSynced(ctx context.Context) error { return c.reflector.WaitSynced(ctx) }

// Status is the health of the cache. An etcd that does not answer is its error, though the watch
// under way has noticed nothing.
func (c *Collection[T]) Status() reflector.Status {
	s := c.reflector.Status()
	if p := c.Cache().Proof(); p.State == watchcache.Failing && s.Err == nil && s.Synced {
		s.Err, s.Class, s.Since = p.Err, reflector.Classify(p.Err), p.Since
	}
	return s
}

// Unreadable is the error of each read while etcd has encrypted values that cannot be decrypted. An
// apiserver.Server asks for it.
func (c *Collection[T]) Unreadable() error {
	if err := c.source.Unreadable(); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: %w", c.Cache().Kind().GroupResource(), err))
	}
	return nil
}

// storage keeps objects in etcd.
type storage[T store.Object] struct {
	source *etcd.Source[T]
	cache  *watchcache.Cache[T]
	leases *leases
}

const (
	// writePatience is for one attempt to write. Etcd itself gives up a request after seven
	// seconds, and says why. Another writer that came first is an answer, too.
	writePatience = 10 * time.Second
	contention    = time.Minute     // how long others may come first
	readPatience  = 5 * time.Second // of the read before it
	freshPatience = 3 * time.Second // until the cache shows it
)

// live is an object as etcd has it; revision is 0 if etcd has none.
func (s *storage[T]) live(ctx context.Context, key string) (obj T, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	obj, revision, err = s.source.Get(ctx, key)
	if err != nil {
		err = notWritten(err)
	}
	return obj, revision, err
}

// Read implements collection.Storage.
func (s *storage[T]) Read(key string) (obj T, found bool, err error) {
	ctx, cancel := context.WithTimeout(s.source.Client().Ctx(), writePatience)
	defer cancel()
	if err := s.answering(ctx); err != nil {
		return obj, false, err
	}
	obj, revision, err := s.live(ctx, key)
	return obj, revision > 0, err
}

// Write implements collection.Storage.
func (s *storage[T]) Write(key string, decide func(T, bool) (collection.Decision[T], error)) (result T, err error) {
	for begun := time.Now(); ; {
		result, again, err := s.attempt(key, decide)
		switch {
		case !again:
			return result, err
		case time.Since(begun) > contention:
			return result, unavailable(fmt.Sprintf("object %s: other writers came first for %s: nothing was written", key, contention))
		}
	}
}

// attempt writes once. It is to be made again if another writer came first, or a lease had ended.
func (s *storage[T]) attempt(key string, decide func(T, bool) (collection.Decision[T], error)) (result T, again bool, err error) {
	ctx, cancel := context.WithTimeout(s.source.Client().Ctx(), writePatience)
	defer cancel()
	if err := s.answering(ctx); err != nil {
		return result, false, err
	}
	stored, revision, err := s.live(ctx, key)
	if err != nil {
		return result, false, err
	}
	d, err := decide(stored, revision > 0)
	if err != nil || d.Op == collection.Keep {
		return d.Object, false, err
	}
	operation, lease := clientv3.OpDelete(s.source.Key(key)), clientv3.NoLease
	if d.Op == collection.Put {
		value, err := s.encode(ctx, key, d.Object)
		if err != nil {
			return result, false, apierrors.NewInternalError(fmt.Errorf("object %s cannot be encoded: %w", key, err))
		}
		if lease, err = s.leases.lease(ctx); err != nil {
			return result, false, notWritten(etcd.StatusOf(ctx, err))
		}
		operation = clientv3.OpPut(s.source.Key(key), string(value), clientv3.WithLease(lease))
	}
	answer, err := s.source.Client().Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.source.Key(key)), "=", revision)).Then(operation).Commit()
	switch {
	case lease != clientv3.NoLease && errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound):
		s.leases.lost(lease)
		return result, true, nil
	case err != nil:
		return result, false, mayBeWritten(etcd.StatusOf(ctx, err))
	case !answer.Succeeded:
		return result, true, nil
	}
	version := strconv.FormatInt(answer.Header.Revision, 10)
	d.Object.SetResourceVersion(version)
	s.shown(ctx, version)
	return d.Object, false, nil
}

// shown waits until the cache shows a write. The write stands even if the cache does not.
func (s *storage[T]) shown(ctx context.Context, version string) {
	ctx, cancel := context.WithTimeout(ctx, freshPatience)
	defer cancel()
	_ = s.cache.WaitFor(ctx, version)
}

// encode is an object as kube-apiserver stores it.
func (s *storage[T]) encode(ctx context.Context, key string, obj T) ([]byte, error) {
	stored := obj.DeepCopyObject().(T)
	stored.SetResourceVersion("")
	stored.GetObjectKind().SetGroupVersionKind(s.cache.Kind().GroupVersionKind())
	return s.source.Value(ctx, key, stored)
}
