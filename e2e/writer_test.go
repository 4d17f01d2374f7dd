package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writer creates, updates, binds and deletes until it is stopped, whether the server is there or
// not.
type writer struct {
	world *world
	gate  sync.RWMutex // held by a write; taken to have none under way
	seed  uint64
	done  sync.WaitGroup
	stop  context.CancelFunc

	creates, updates, binds, deletes, failures atomic.Int64
}

// startWriter begins to write pods, and widgets with them where widgets is set, every pace.
func (w *world) startWriter(pace time.Duration, widgets bool) *writer {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := &writer{world: w, seed: rand.Uint64(), stop: cancel}
	w.t.Logf("writer's seed: %d", out.seed)
	w.t.Cleanup(out.end)
	out.done.Go(func() { out.run(ctx, pace, widgets) })
	return out
}

func (o *writer) end() {
	o.stop()
	o.done.Wait()
}

// quietly calls do while nothing is being written.
func (o *writer) quietly(do func()) {
	o.gate.Lock()
	defer o.gate.Unlock()
	do()
}

// written waits until n more writes have succeeded.
func (o *writer) written(n int64) {
	o.world.t.Helper()
	sum := func() int64 { return o.creates.Load() + o.updates.Load() + o.binds.Load() + o.deletes.Load() }
	before := sum()
	require.Eventually(o.world.t, func() bool { return sum() >= before+n }, time.Minute, 10*time.Millisecond)
}

func (o *writer) run(ctx context.Context, pace time.Duration, widgets bool) {
	random := rand.New(rand.NewPCG(o.seed, 0))
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		o.gate.RLock()
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		if widgets && n%4 == 3 {
			o.writeWidget(short, random, n)
		} else {
			o.writePod(short, random, n)
		}
		cancel()
		o.gate.RUnlock()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (o *writer) writePod(ctx context.Context, random *rand.Rand, n int) {
	pods := o.world.client.CoreV1().Pods("default")
	fresh, node := fmt.Sprintf("written-%06d", n), nodeName(random.IntN(nodes))
	some := podName(random.IntN(o.world.filled))
	now := int64(0)
	switch random.IntN(6) {
	case 0:
		_, err := pods.Create(ctx, newPod(fresh, node), metav1.CreateOptions{})
		o.count(&o.creates, err)
	case 1: // created without a node, and bound to one as the scheduler does
		_, err := pods.Create(ctx, newPod(fresh, ""), metav1.CreateOptions{})
		o.count(&o.creates, err)
		err = pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: fresh}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
		o.count(&o.binds, err)
	case 2:
		o.count(&o.deletes, pods.Delete(ctx, some, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	case 3: // the same name, another object
		o.count(&o.deletes, pods.Delete(ctx, some, metav1.DeleteOptions{GracePeriodSeconds: &now}))
		_, err := pods.Create(ctx, newPod(some, node), metav1.CreateOptions{})
		o.count(&o.creates, err)
	default:
		_, err := pods.Patch(ctx, some, mergePatch, roundPatch(n), metav1.PatchOptions{})
		o.count(&o.updates, err)
	}
}

func (o *writer) writeWidget(ctx context.Context, random *rand.Rand, n int) {
	widgets := o.world.dynamics.Resource(widgetResource).Namespace("default")
	some := podName(random.IntN(o.world.filled))
	switch random.IntN(3) {
	case 0:
		o.count(&o.deletes, widgets.Delete(ctx, some, metav1.DeleteOptions{}))
	case 1:
		_, err := widgets.Create(ctx, newWidget(fmt.Sprintf("written-%06d", n), nodeName(n)), metav1.CreateOptions{})
		o.count(&o.creates, err)
	default:
		_, err := widgets.Patch(ctx, some, mergePatch, []byte(fmt.Sprintf(`{"spec":{"round":"%d"}}`, n)), metav1.PatchOptions{})
		o.count(&o.updates, err)
	}
}

func (o *writer) count(what *atomic.Int64, err error) {
	if err != nil {
		what = &o.failures
	}
	what.Add(1)
}

func (o *writer) String() string {
	return fmt.Sprintf("written: %d creates, %d updates, %d binds, %d deletes; %d writes failed, most of them while the server was away",
		o.creates.Load(), o.updates.Load(), o.binds.Load(), o.deletes.Load(), o.failures.Load())
}

const mergePatch = types.MergePatchType

func roundPatch(n int) []byte {
	return []byte(fmt.Sprintf(`{"metadata":{"annotations":{"e2e.tributary.dev/round":"%d"}}}`, n))
}
