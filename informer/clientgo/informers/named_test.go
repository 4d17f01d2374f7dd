//go:build !clientgo035

package informers_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgo "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	adapted "github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
)

// TestWithInformerName: our informers take the same resources of the name as client-go's, by the
// names that the API has. Before its release 0.38, client-go misspells some, such as ingresss.
func TestWithInformerName(t *testing.T) {
	klog.SetLogger(logr.Discard()) // it would print each name that is taken
	defer klog.ClearLogger()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	for clients, clientset := range map[string]kubernetes.Interface{"real": client, "fake": fake.NewClientset()} {
		t.Run(clients, func(t *testing.T) {
			named := func(side string) *cache.InformerName {
				name, err := cache.NewInformerName(t.Name() + side)
				require.NoError(t, err)
				t.Cleanup(name.Release)
				return name
			}
			theirs, ours := named("client-go"), named("tributary")
			their := clientgo.NewSharedInformerFactoryWithOptions(clientset, 0, clientgo.WithInformerName(theirs))
			our := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithInformerName(ours))
			require.Same(t, ours, our.InformerName())
			count := 0
			for kind := range scheme.Scheme.AllKnownTypes() {
				resource, _ := meta.UnsafeGuessKindToResource(kind)
				made, err := our.ForResource(resource)
				if err != nil {
					continue // not a resource with an informer
				}
				count++
				_, isOurs := adapted.StatusOf(made.Informer())
				require.True(t, isOurs, resource)
				made, err = their.ForResource(resource)
				require.NoError(t, err)
				made.Informer()
				require.False(t, ours.WithResource(resource).Reserved(), "ours leaves %s free", resource)
				misspelt := resource.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
				require.False(t, theirs.WithResource(resource).Reserved() && theirs.WithResource(misspelt).Reserved(),
					"client-go's leaves %s free", resource)
			}
			require.Greater(t, count, 50)
		})
	}
}
