package main

import (
	"context"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/etcd"
	stored "github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

// source is a subject of a measurement.
type source interface {
	// sync returns when the whole state is there.
	sync(ctx context.Context)
	// reach returns when all changes up to a revision have come.
	reach(ctx context.Context, revision int64)
}

func newReader(k kind, j job) source {
	switch j.Reader {
	case apiServer:
		return newTheirs(k, j.Endpoint)
	case floor:
		return &plain{client: newClient(j.Endpoint), prefix: k.prefix()}
	}
	return k.ours(newClient(j.Endpoint))
}

// plain receives bytes with etcd's client.
type plain struct {
	client   *clientv3.Client
	prefix   string
	revision int64
	answers  clientv3.WatchChan
}

func (p *plain) sync(ctx context.Context) {
	for answer := range harness.Must(p.client.GetStream(ctx, p.prefix, clientv3.WithPrefix())) {
		harness.Check(answer.Err())
		p.revision = max(p.revision, answer.GetHeader().GetRevision())
	}
}

func (p *plain) reach(ctx context.Context, revision int64) {
	if p.answers == nil {
		p.answers = p.client.Watch(ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(p.revision+1))
	}
	for p.revision < revision {
		answer, ok := <-p.answers
		if !ok || answer.Err() != nil {
			harness.Fail("the watch has ended: %w", answer.Err())
		}
		p.revision = answer.Header.Revision
		if n := len(answer.Events); n > 0 {
			p.revision = answer.Events[n-1].Kv.ModRevision
		}
	}
}

// ours is a collection of package etcd with its cache.
type ours[T store.Object] struct {
	collection *stored.Collection[T]
}

func newOurs[T store.Object](from *etcd.Source[T], described apiserver.Resource[T]) source {
	return ours[T]{harness.Must(stored.New(from, described.Kind, described.Rules))}
}

func (o ours[T]) sync(ctx context.Context) {
	go func() { _ = o.collection.Run(ctx) }() // until the process ends
	harness.Check(o.collection.WaitSynced(ctx))
}

func (o ours[T]) reach(ctx context.Context, revision int64) {
	untilFresh(ctx, func() error { return o.collection.Cache().WaitFor(ctx, strconv.FormatInt(revision, 10)) })
}

// theirs is the API server's storage with its cacher, put together by its own code.
type theirs struct {
	storage storage.Interface
	kind    kind
}

func newTheirs(k kind, endpoint string) source {
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
	harness.Check(err)
	return theirs{s, k}
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	return m.GetLabels(), fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}, nil
}

func (t theirs) sync(ctx context.Context) {
	for t.storage.ReadinessCheck() != nil {
		harness.Check(ctx.Err())
		time.Sleep(time.Millisecond)
	}
}

func (t theirs) reach(ctx context.Context, revision int64) {
	untilFresh(ctx, func() error {
		return t.storage.Get(ctx, t.kind.folder+"/none", storage.GetOptions{
			ResourceVersion: strconv.FormatInt(revision, 10), IgnoreNotFound: true,
		}, t.kind.empty())
	})
}

// untilFresh asks a cache again that has given up to wait, which both do after three seconds.
func untilFresh(ctx context.Context, ask func() error) {
	for {
		err := ask()
		if ctx.Err() != nil || !(storage.IsTooLargeResourceVersion(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)) {
			harness.Check(err)
			return
		}
	}
}
