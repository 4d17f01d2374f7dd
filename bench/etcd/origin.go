package main

import (
	"context"
	"net/url"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/bench/harness"
)

// origin is an etcd of one member in this process, on a folder of its own.
type origin struct {
	endpoint string
	client   *clientv3.Client
	server   *embed.Etcd
	folder   string
	states   int // of objects so far: each change makes a new one
}

const quota = 8 << 30 // bytes of the database

func startEtcd(ctx context.Context) *origin {
	o := &origin{folder: harness.Must(os.MkdirTemp("", "bench-etcd-"))}
	if err := harness.Try(func() { o.start(ctx) }); err != nil {
		o.close()
		harness.Check(err)
	}
	return o
}

func (o *origin) start(ctx context.Context) {
	config := embed.NewConfig()
	config.Dir, config.QuotaBackendBytes, config.UnsafeNoFsync = o.folder, quota, true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	o.server = harness.Must(embed.StartEtcd(config))
	select {
	case <-o.server.Server.ReadyNotify():
	case <-ctx.Done():
		harness.Check(ctx.Err())
	}
	o.endpoint = "http://" + o.server.Clients[0].Addr().String()
	o.client = newClient(o.endpoint)
}

func newClient(endpoint string) *clientv3.Client {
	return harness.Must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()}))
}

func (o *origin) close() {
	if o.client != nil {
		_ = o.client.Close()
	}
	if o.server != nil {
		o.server.Close()
	}
	_ = os.RemoveAll(o.folder)
}

// fill writes the objects of a kind, and returns their bytes.
func (o *origin) fill(ctx context.Context, k kind) (size int) {
	o.put(ctx, k.objects, func(i int) (string, []byte) {
		key, value := k.stored(i, 0)
		size += len(value)
		return key, value
	})
	return size
}

// change writes a new state of an object so many times, and returns the last revision.
func (o *origin) change(ctx context.Context, k kind, changes int) (revision int64) {
	return o.put(ctx, changes, func(i int) (string, []byte) {
		o.states++
		return k.stored(i%k.objects, o.states)
	})
}

const (
	inFlight = 32 // transactions at a time
	// A transaction is one revision. An etcd sends a watcher that is behind 1,000 revisions each
	// 100 ms: with one change in each, every reader would be as fast as the other.
	maxChanges = 50
	maxBytes   = 1 << 20
)

// put writes n values in transactions, and returns the last revision.
func (o *origin) put(ctx context.Context, n int, of func(i int) (key string, value []byte)) int64 {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for i := 0; i < n && within.Err() == nil; {
		var puts []clientv3.Op
		for size := 0; i < n && len(puts) < maxChanges && size < maxBytes; i++ {
			key, value := of(i)
			puts, size = append(puts, clientv3.OpPut(key, string(value))), size+len(value)
		}
		group.Go(func() error {
			_, err := o.client.Txn(within).Then(puts...).Commit()
			return err
		})
	}
	harness.Check(group.Wait())
	return harness.Must(o.client.Get(ctx, registry)).Header.Revision
}
