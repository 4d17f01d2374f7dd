package predicate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/predicate"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func pod(name, app string, generation int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: map[string]string{"app": app}, Generation: generation,
	}}
}

func isWeb(p *corev1.Pod) bool { return p.Labels["app"] == "web" }

func Example() {
	// A program has listwatch.FromClient[corev1.Pod](client, "pods") instead.
	api, _ := apiserver.NewServer()
	server := apiserver.Serve(api, builtin.Pods())
	stored, _ := server.Create(pod("a", "web", 1))
	_, _ = server.Create(pod("b", "db", 1))

	ctx, stop := context.WithCancel(context.Background())
	pods := informer.New[*corev1.Pod](server.Cache())
	_, _ = pods.AddHandler(predicate.Filter(isWeb, predicate.Updates(func(e informer.Event[*corev1.Pod]) {
		fmt.Println(e.Key, e.Type)
		if e.Type == informer.Deleted {
			stop()
			return
		}
		relabelled := stored.DeepCopy()
		relabelled.Labels["app"] = "api"
		_, _ = server.Update(relabelled)
	}, predicate.Generation, predicate.Labels)))
	fmt.Println("ended:", pods.Run(ctx))
	// Output:
	// ns/a added
	// ns/a deleted
	// ended: <nil>
}

// TestFilter: after random histories, whose last states may be told by their deletion alone, the
// handler has the objects that match, and was told nothing about objects that it does not know.
func TestFilter(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		all, mirror := map[string]*corev1.Pod{}, map[string]*corev1.Pod{}
		handle := predicate.Filter(isWeb, func(e informer.Event[*corev1.Pod]) {
			switch e.Type {
			case informer.Added:
				require.NotContains(t, mirror, e.Key)
				require.Nil(t, e.Old)
			default:
				require.Contains(t, mirror, e.Key)
			}
			require.True(t, e.Type == informer.Deleted && e.New == nil || isWeb(e.New))
			if e.Type == informer.Updated {
				require.Same(t, mirror[e.Key], e.Old, "the state told last")
			}
			if mirror[e.Key] = e.New; e.Type == informer.Deleted {
				delete(mirror, e.Key)
			}
		})
		for i := range 100 {
			name := strconv.Itoa(random.IntN(5))
			e := informer.Event[*corev1.Pod]{Key: "ns/" + name, New: pod(name, []string{"web", "db"}[random.IntN(2)], int64(i))}
			old, there := all[e.Key]
			switch {
			case !there:
				e.Type, e.Initial = informer.Added, i < 3
			case random.IntN(4) == 0:
				e.Type, e.Old, e.New = informer.Deleted, e.New, nil // the final state was not told
			case random.IntN(4) == 0:
				e.Type, e.Old, e.New = informer.Redelivered, old, old
			default:
				e.Type, e.Old = informer.Updated, old
			}
			if all[e.Key] = e.New; e.New == nil {
				delete(all, e.Key)
			}
			handle(e)
			want := map[string]*corev1.Pod{}
			for key, p := range all {
				if isWeb(p) {
					want[key] = p
				}
			}
			require.Equal(t, want, mirror)
		}
	}
}

// TestUpdates: an update passes if something that counts has changed; all other events pass.
func TestUpdates(t *testing.T) {
	base := pod("a", "web", 1)
	annotated := base.DeepCopy()
	annotated.Annotations = map[string]string{"a": "b"}
	type pods = func(before, after *corev1.Pod) bool
	for name, row := range map[string]struct {
		before, after *corev1.Pod
		changed       []pods
		passes        bool
	}{
		"status alone":           {base, base.DeepCopy(), []pods{predicate.Generation[*corev1.Pod], predicate.Labels[*corev1.Pod], predicate.Annotations[*corev1.Pod]}, false},
		"the spec":               {base, pod("a", "web", 2), []pods{predicate.Generation[*corev1.Pod]}, true},
		"kinds without a number": {pod("a", "web", 0), pod("a", "web", 0), []pods{predicate.Generation[*corev1.Pod]}, true},
		"labels, not asked for":  {base, pod("a", "db", 1), []pods{predicate.Generation[*corev1.Pod]}, false},
		"labels":                 {base, pod("a", "db", 1), []pods{predicate.Generation[*corev1.Pod], predicate.Labels[*corev1.Pod]}, true},
		"annotations":            {base, annotated, []pods{predicate.Annotations[*corev1.Pod]}, true},
		"no functions":           {base, annotated, nil, false},
	} {
		told := 0
		handle := predicate.Updates(func(informer.Event[*corev1.Pod]) { told++ }, row.changed...)
		handle(informer.Event[*corev1.Pod]{Type: informer.Updated, Old: row.before, New: row.after})
		require.Equal(t, row.passes, told == 1, name)
		handle(informer.Event[*corev1.Pod]{Type: informer.Added, New: row.before})
		handle(informer.Event[*corev1.Pod]{Type: informer.Deleted, Old: row.before})
		handle(informer.Event[*corev1.Pod]{Type: informer.Redelivered, Old: row.before, New: row.before})
		if row.passes {
			told--
		}
		require.Equal(t, 3, told, name)
	}
}
