package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/internal/wire"
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
	source    *Source[T]
	reflector *reflector.Reflector[T]
}

// NewCollection makes a collection of the objects that a source reads. There may be some already:
//
//	resource := builtin.Pods()
//	pods, err := etcd.NewCollection(etcd.New[corev1.Pod](client, "/registry/pods/"), resource.Kind, resource.Rules)
//	if err != nil { … }
//	apiserver.ServeCollection(server, pods.Collection, resource.View, apiserver.FilledBy(pods))
//	err = pods.Run(ctx) // until ctx ends
//
// The source is the collection's from here on, and refuses objects of another version than the
// kind's. Types with generated code are stored in protobuf, documents in JSON, as
// kube-apiserver stores them. It fails on a source of one namespace, and as collection.New does.
func NewCollection[T store.Object](
	source *Source[T], kind watchcache.Kind[T], rules collection.Rules[T], options ...watchcache.Option,
) (*Collection[T], error) {
	if source.options.namespace != "" {
		return nil, fmt.Errorf("etcd: NewCollection: the source reads the namespace %s alone: leave out InNamespace", source.options.namespace)
	}
	cache, err := watchcache.NewCache(kind, append(slices.Clone(options), watchcache.WithUpstream(source))...)
	if err != nil {
		return nil, err
	}
	source.decoder.apiVersion = kind.GroupVersionKind().GroupVersion().String()
	c := &Collection[T]{source: source, reflector: reflector.New[T](source, cache)}
	c.Collection, err = collection.On(cache, rules, collection.Storage[T](&storage[T]{
		source: source, cache: cache, leases: &leases{client: source.client, expiry: source.options.expiry},
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

// storage keeps objects in etcd.
type storage[T store.Object] struct {
	source *Source[T]
	cache  *watchcache.Cache[T]
	leases *leases
}

const (
	// writePatience is for one write with all its attempts. Etcd itself gives up a request after
	// seven seconds, and says why.
	writePatience = 10 * time.Second
	readPatience  = 5 * time.Second // of the read before it
	freshPatience = 3 * time.Second // until the cache shows it
)

func (s *storage[T]) key(of string) string { return s.source.prefix + of }

// live is an object as etcd has it; revision is 0 if etcd has none.
func (s *storage[T]) live(ctx context.Context, key string) (obj T, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	answer, err := s.source.client.Get(ctx, s.key(key))
	if err != nil {
		return obj, 0, notWritten(classified(ctx, err))
	}
	if len(answer.Kvs) == 0 {
		return obj, 0, nil
	}
	kv := answer.Kvs[0]
	obj, err = s.source.decoder.object(key, kv.Value, kv.ModRevision, false)
	if err != nil {
		return obj, 0, apierrors.NewInternalError(fmt.Errorf("object %s cannot be used: %w", key, err))
	}
	return obj, kv.ModRevision, nil
}

// Read implements collection.Storage.
func (s *storage[T]) Read(key string) (obj T, found bool, err error) {
	ctx, cancel := context.WithTimeout(s.source.client.Ctx(), writePatience)
	defer cancel()
	if err := s.answering(ctx); err != nil {
		return obj, false, err
	}
	obj, revision, err := s.live(ctx, key)
	return obj, revision > 0, err
}

// Write implements collection.Storage.
func (s *storage[T]) Write(key string, decide func(T, bool) (collection.Decision[T], error)) (result T, err error) {
	ctx, cancel := context.WithTimeout(s.source.client.Ctx(), writePatience)
	defer cancel()
	if err := s.answering(ctx); err != nil {
		return result, err
	}
	for {
		stored, revision, err := s.live(ctx, key)
		if err != nil {
			return result, err
		}
		d, err := decide(stored, revision > 0)
		if err != nil || d.Op == collection.Keep {
			return d.Object, err
		}
		operation, lease := clientv3.OpDelete(s.key(key)), clientv3.NoLease
		if d.Op == collection.Put {
			value, err := s.encode(d.Object)
			if encrypt := s.source.options.encrypt; encrypt != nil && err == nil {
				value, err = encrypt(ctx, s.key(key), value)
			}
			if err != nil {
				return result, apierrors.NewInternalError(fmt.Errorf("object %s cannot be encoded: %w", key, err))
			}
			if lease, err = s.leases.lease(ctx); err != nil {
				return result, notWritten(classified(ctx, err))
			}
			operation = clientv3.OpPut(s.key(key), string(value), clientv3.WithLease(lease))
		}
		answer, err := s.source.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.key(key)), "=", revision)).Then(operation).Commit()
		switch {
		case lease != clientv3.NoLease && is(err, rpctypes.ErrLeaseNotFound):
			s.leases.lost(lease)
		case err != nil:
			return result, mayBeWritten(classified(ctx, err))
		case answer.Succeeded:
			version := strconv.FormatInt(answer.Header.Revision, 10)
			d.Object.SetResourceVersion(version)
			s.shown(ctx, version)
			return d.Object, nil
		}
	}
}

// shown waits until the cache shows a write. The write stands even if the cache does not.
func (s *storage[T]) shown(ctx context.Context, version string) {
	ctx, cancel := context.WithTimeout(ctx, freshPatience)
	defer cancel()
	_ = s.cache.WaitFor(ctx, version)
}

// encode is an object as kube-apiserver stores it, without its version.
func (s *storage[T]) encode(obj T) ([]byte, error) {
	stored := obj.DeepCopyObject().(T)
	stored.SetResourceVersion("")
	kind := s.cache.Kind().GroupVersionKind()
	message, ok := any(stored).(interface{ Marshal() ([]byte, error) })
	if !ok {
		stored.GetObjectKind().SetGroupVersionKind(kind)
		text, err := json.Marshal(stored)
		if write := s.source.options.write; write != nil && err == nil {
			text, err = write(text)
		}
		return bytes.TrimSpace(text), err
	}
	stored.GetObjectKind().SetGroupVersionKind(kind)
	raw, err := message.Marshal()
	if err != nil {
		return nil, err
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: name}, Raw: raw}
	envelope, err := unknown.Marshal()
	return slices.Concat([]byte(wire.Magic), envelope), err
}
