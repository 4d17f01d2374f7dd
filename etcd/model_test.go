package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// truth is what etcd's own client is told of a collection: a second account of each change.
type truth struct {
	mu      sync.Mutex
	changes []histories.Change
	newest  int64
}

func (w *truth) follow(ctx context.Context, client *clientv3.Client, after int64) {
	for answer := range client.Watch(ctx, pods, clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
		w.mu.Lock()
		for _, e := range answer.Events {
			c := histories.Change{
				Type: watch.Modified, Key: string(e.Kv.Key[len(pods):]), ResourceVersion: at(e.Kv.ModRevision),
			}
			switch {
			case e.Type == mvccpb.Event_DELETE:
				c.Type = watch.Deleted
			case e.IsCreate():
				c.Type = watch.Added
			}
			w.changes, w.newest = append(w.changes, c), e.Kv.ModRevision
		}
		w.mu.Unlock()
	}
}

func (w *truth) read() ([]histories.Change, int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes, w.newest
}

// TestRandomHistories: whatever is written, whenever streams break and history is compacted,
// readers and stores are told what etcd's own client is told: in order, once, without a gap.
func TestRandomHistories(t *testing.T) {
	server := start(t)
	seeds := []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			writer := connect(t, clientv3.Config{}, server)
			_, err := writer.Delete(t.Context(), pods, clientv3.WithPrefix())
			require.NoError(t, err)
			gate := &tap{noRangeStream: random.IntN(2) == 0}
			client := connect(t, gate.config(), server)
			first := put(t, writer, pod("first"))
			var told truth
			go told.follow(t.Context(), writer, first-1)

			source := etcd.New[corev1.Pod](client, pods, etcd.WithProgressEvery(3*time.Millisecond))
			recorded, bySource := histories.RecordSource("source", source)
			indexer := store.NewIndexer[*corev1.Pod]()
			written, byStore := histories.RecordStore("store", store.Store[*corev1.Pod](indexer))
			cache, err := watchcache.NewCache(watchcache.Pods())
			require.NoError(t, err)
			readers := []*reflector.Reflector[*corev1.Pod]{keep(t, recorded, written), keep(t, source, cache)}
			for _, r := range readers {
				synced(t, r)
			}

			last, compacted := first, first
			forget := func(revision int64) {
				require.Eventually(t, func() bool { _, newest := told.read(); return newest == last }, patience, time.Millisecond)
				if revision > compacted {
					compacted = revision
					compact(t, writer, revision)
				}
			}
			for range 400 {
				name := fmt.Sprint("pod-", random.IntN(12))
				switch n := random.IntN(40); {
				case n == 0:
					gate.lost.Add(int64(1 + random.IntN(3)))
				case n == 1:
					forget(last - int64(random.IntN(2)))
				case n == 2:
					gate.hold()
					for range random.IntN(20) {
						last = put(t, writer, pod(name, labelled("n", fmt.Sprint(random.Uint64()))))
					}
					if random.IntN(2) == 0 {
						forget(last)
					}
					gate.release()
				case n < 12:
					answer, err := writer.Delete(t.Context(), pods+"ns/"+name)
					require.NoError(t, err)
					if answer.Deleted > 0 {
						last = answer.Header.Revision
					}
				default:
					last = put(t, writer, pod(name, labelled("n", fmt.Sprint(random.Uint64()))))
				}
			}
			last = put(t, writer, pod("last"))
			for _, r := range readers {
				reached(t, r, last)
			}
			require.Eventually(t, func() bool { _, newest := told.read(); return newest == last }, patience, time.Millisecond)
			changes, _ := told.read()
			require.NoError(t, histories.Check(changes, bySource.History(), byStore.History()))
			requireEqual(t, writer, indexer.Snapshot())
			requireEqual(t, writer, cache.Snapshot())
		})
	}
}
