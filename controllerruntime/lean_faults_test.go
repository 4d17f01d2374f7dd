package controllerruntime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/controllerruntime"
)

// TestLeanUnderFaults: names are written, read and deleted while networks are slow and watches
// break. A read is a state that the server had, never older than the read before it and than the
// event that was told last, and in the end it is the newest.
func TestLeanUnderFaults(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { leanUnderFaults(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func leanUnderFaults(t *testing.T, random *rand.Rand) {
	r := newLeanRig(t, cache.Options{}, controllerruntime.LeanIdle(time.Minute))
	informer, err := r.GetInformer(t.Context(), metadataOfSecrets())
	require.NoError(t, err)
	var mu sync.Mutex
	history := map[string]map[int]string{} // the value that a name had from a step on
	last, latest := map[string]int{}, map[string]int{}
	told := map[string]int{}  // the step of the newest event of each name
	steps := map[string]int{} // by resource version
	tell := func(obj any) {
		mu.Lock()
		defer mu.Unlock()
		if unknown, is := obj.(toolscache.DeletedFinalStateUnknown); is { // after that state
			before := unknown.Obj.(*metav1.PartialObjectMetadata)
			step := steps[before.ResourceVersion]
			for step < latest[before.Name] && history[before.Name][step] != "none" {
				step++
			}
			told[before.Name] = step
			return
		}
		event := obj.(*metav1.PartialObjectMetadata)
		told[event.Name] = steps[event.ResourceVersion]
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell,
	})
	require.NoError(t, err)
	start(t, r)
	check := func(name string, limit time.Duration) {
		mu.Lock()
		floor := max(told[name], last[name])
		mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var obj corev1.Secret
		err := r.Get(ctx, keyOf("ns", name), &obj)
		if err != nil && !apierrors.IsNotFound(err) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return
		}
		got := "none"
		if err == nil {
			got = string(obj.Data["value"])
		}
		for step := latest[name]; step >= floor; step-- { // the newest state that it may be
			if value, ok := history[name][step]; ok && value == got {
				if got != "none" {
					last[name] = step
				}
				return
			}
		}
		require.Fail(t, "an old state", "%s is %s, of a step before %d: %v", name, got, floor, history[name])
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		history[name] = map[int]string{0: "none"}
	}
	for step := 1; step < 150; step++ {
		name := names[random.IntN(len(names))]
		network := []*slowNetwork{r.named, r.unnamed}[random.IntN(2)]
		switch random.IntN(8) {
		case 0:
			network.shut()
		case 1, 2:
			select {
			case <-network.open:
			default:
				network.unlock()
			}
		case 3:
			r.secrets.Disconnect()
		case 4:
			time.Sleep(time.Duration(random.Int64N(int64(100 * time.Second))))
		case 5:
			if history[name][latest[name]] != "none" {
				mu.Lock()
				gone := r.secrets.Remove(secret(name, ""))
				steps[gone.ResourceVersion], latest[name], history[name][step] = step, step, "none"
				mu.Unlock()
			}
		default:
			mu.Lock()
			value := fmt.Sprint(step)
			steps[r.put(name, value).ResourceVersion], latest[name], history[name][step] = step, step, value
			mu.Unlock()
		}
		if random.IntN(3) == 0 {
			synctest.Wait()
		}
		check(name, time.Second)
	}
	for _, network := range []*slowNetwork{r.named, r.unnamed} {
		select {
		case <-network.open:
		default:
			network.unlock()
		}
	}
	time.Sleep(5 * time.Minute)
	for _, name := range names {
		require.Equal(t, history[name][latest[name]], r.value(name))
	}
}
