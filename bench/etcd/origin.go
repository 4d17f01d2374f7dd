package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// origin is an etcd of one member in this process, on a folder of its own.
type origin struct {
	endpoint string
	client   *clientv3.Client
	server   *embed.Etcd
	folder   string
	states   atomic.Int64 // of objects so far: each change makes a new one
}

const quota = 8 << 30 // bytes of the database

func startEtcd(ctx context.Context) (*origin, error) {
	folder, err := os.MkdirTemp("", "bench-etcd-")
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir, config.QuotaBackendBytes, config.UnsafeNoFsync = folder, quota, true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	o := &origin{folder: folder}
	if o.server, err = embed.StartEtcd(config); err != nil {
		o.close()
		return nil, err
	}
	select {
	case <-o.server.Server.ReadyNotify():
	case <-ctx.Done():
		o.close()
		return nil, ctx.Err()
	}
	o.endpoint = "http://" + o.server.Clients[0].Addr().String()
	if o.client, err = clientv3.New(clientv3.Config{Endpoints: []string{o.endpoint}, Logger: zap.NewNop()}); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
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
func (o *origin) fill(ctx context.Context, k kind, objects int) (size int64, err error) {
	var written atomic.Int64
	_, err = o.put(ctx, objects, func(i int) (string, []byte, error) {
		key, value, err := k.stored(i, 0)
		written.Add(int64(len(value)))
		return key, value, err
	})
	return written.Load(), err
}

// change writes a new state of an object so many times, and returns the last revision.
func (o *origin) change(ctx context.Context, k kind, objects, changes int) (revision int64, err error) {
	return o.put(ctx, changes, func(i int) (string, []byte, error) {
		return k.stored(i%objects, int(o.states.Add(1)))
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
func (o *origin) put(ctx context.Context, n int, of func(i int) (key string, value []byte, err error)) (int64, error) {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for i := 0; i < n && within.Err() == nil; {
		var puts []clientv3.Op
		for size := 0; i < n && len(puts) < maxChanges && size < maxBytes; i++ {
			key, value, err := of(i)
			if err != nil {
				return 0, errors.Join(err, group.Wait())
			}
			puts, size = append(puts, clientv3.OpPut(key, string(value))), size+len(value)
		}
		group.Go(func() error {
			_, err := o.client.Txn(within).Then(puts...).Commit()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	answer, err := o.client.Get(ctx, registry)
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}
