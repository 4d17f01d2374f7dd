package controller_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/informer/join"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// decodings is how many counted pods have been decoded.
var decodings atomic.Int64

// countedPod is a pod that counts its decodings.
type countedPod struct{ corev1.Pod }

func (p *countedPod) Unmarshal(data []byte) error {
	decodings.Add(1)
	return p.Pod.Unmarshal(data)
}

// TestFeedsOfPackedCopies: the keys of objects and of owners decode nothing, with a checkpoint too.
// A function of whole objects has them decoded.
func TestFeedsOfPackedCopies(t *testing.T) {
	type copied = join.Collection[*countedPod]
	replicaSets := schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	for name, row := range map[string]struct {
		feed    func(copied) controller.Feed[string]
		keys    []string
		decodes bool
		passes  bool // a full pass decodes nothing either
	}{
		"own keys": {func(c copied) controller.Feed[string] { return controller.For(c) }, []string{"ns/a"}, false, true},
		"owners": {func(c copied) controller.Feed[string] {
			return controller.FromMeta(c, enqueue.Owner[store.Object](replicaSets))
		}, []string{"ns/web"}, false, false},
		"whole objects": {func(c copied) controller.Feed[string] {
			return controller.From(c, enqueue.Owner[*countedPod](replicaSets))
		}, []string{"ns/web"}, true, false},
	} {
		for _, union := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					yes := true
					made := r.create("a", func(p pod) {
						p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: &yes}}
					})
					source := listwatch.Project(r.pods.ListerWatcher(), func(p pod) *countedPod { return &countedPod{*p.DeepCopy()} })
					atRest := informer.WithStore(packed.New[countedPod])
					var pods interface {
						copied
						Run(context.Context) error
					} = informer.New(source, atRest)
					if union {
						u := informer.NewUnion[*countedPod](atRest)
						_, err := u.Add("all", source)
						require.NoError(t, err)
						pods = u
					}
					decodings.Store(0)
					c := &controller.Controller[string]{
						Reconcile: r.reconcile, Copies: []controller.Runner{pods}, Name: "mine", Checkpoint: filepath.Join(t.TempDir(), "done"),
						Feeds: []controller.Feed[string]{row.feed(pods)},
					}
					stop := run(t.Context(), c)
					require.Equal(t, row.keys, r.calls())
					made = r.label(made, "web")
					require.Equal(t, row.keys, r.calls())
					require.Equal(t, row.decodes, decodings.Load() > 0, "%d decodings", decodings.Load())
					decodings.Store(0)
					c.AddAll()
					require.Equal(t, row.keys, r.calls())
					require.Equal(t, row.passes, decodings.Load() == 0)
					r.pods.Remove(made)
					require.Equal(t, row.keys, r.calls())
					require.NoError(t, stop())
				})
			})
		}
	}
}
