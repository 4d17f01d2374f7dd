package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/tributary-go/tributary/etcd"
	stored "github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

var errEnded = errors.New("the watch has ended")

func newReader(k kind, j job) (source, error) {
	if j.Reader == apiServer {
		return newTheirs(k, j.Endpoint)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{j.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	if j.Reader == floor {
		return &plain{client: client, prefix: registryPrefix(k)}, nil
	}
	return k.ours(client)
}

func registryPrefix(k kind) string { return registry + k.folder + "/" }

// plain receives bytes with etcd's client.
type plain struct {
	client   *clientv3.Client
	prefix   string
	revision int64
	answers  clientv3.WatchChan
}

func (p *plain) sync(ctx context.Context) error {
	answers, err := p.client.GetStream(ctx, p.prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for answer := range answers {
		if err := answer.Err(); err != nil {
			return err
		}
		p.revision = max(p.revision, answer.GetHeader().GetRevision())
	}
	return nil
}

func (p *plain) reach(ctx context.Context, revision int64) error {
	if p.answers == nil {
		p.answers = p.client.Watch(ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(p.revision+1))
	}
	for p.revision < revision {
		answer, ok := <-p.answers
		if !ok || answer.Err() != nil {
			return errors.Join(errEnded, answer.Err())
		}
		p.revision = answer.Header.Revision
		if n := len(answer.Events); n > 0 {
			p.revision = answer.Events[n-1].Kv.ModRevision
		}
	}
	return nil
}

// ours is a collection of package etcd with its cache.
type ours[T store.Object] struct {
	collection *stored.Collection[T]
}

func newOurs[T store.Object](from *etcd.Source[T], described apiserver.Resource[T]) (source, error) {
	c, err := stored.New(from, described.Kind, described.Rules)
	return ours[T]{c}, err
}

func (o ours[T]) sync(ctx context.Context) error {
	go func() { _ = o.collection.Run(ctx) }() // until the process ends
	return o.collection.WaitSynced(ctx)
}

func (o ours[T]) reach(ctx context.Context, revision int64) error {
	return untilFresh(ctx, func() error { return o.collection.Cache().WaitFor(ctx, strconv.FormatInt(revision, 10)) })
}

// theirs is the API server's storage with its cacher, put together by its own code.
type theirs struct {
	storage storage.Interface
	folder  string
	empty   func() runtime.Object
}

func newTheirs(k kind, endpoint string) (source, error) {
	config := storagebackend.NewDefaultConfig(registry, k.codec)
	config.Transport.ServerList, config.CompactionInterval = []string{endpoint}, 0
	key := func(obj runtime.Object) (string, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return "", err
		}
		return k.folder + "/" + store.Key(m.GetNamespace(), m.GetName()), nil
	}
	s, _, err := genericregistry.StorageWithCacher()(config.ForResource(k.resource.GroupResource()), k.folder, key,
		k.empty, k.emptyList, attributes, nil, nil)
	return theirs{s, k.folder, k.empty}, err
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	return m.GetLabels(), fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}, nil
}

func (t theirs) sync(ctx context.Context) error {
	for t.storage.ReadinessCheck() != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (t theirs) reach(ctx context.Context, revision int64) error {
	return untilFresh(ctx, func() error {
		return t.storage.Get(ctx, t.folder+"/none", storage.GetOptions{
			ResourceVersion: strconv.FormatInt(revision, 10), IgnoreNotFound: true,
		}, t.empty())
	})
}

// untilFresh asks a cache again that has given up to wait, which both do after three seconds.
func untilFresh(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || ctx.Err() != nil || !(storage.IsTooLargeResourceVersion(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)) {
			return err
		}
	}
}
