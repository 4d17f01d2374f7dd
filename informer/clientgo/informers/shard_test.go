package informers_test

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	adapted "github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/informer/clientgo/metadatainformer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// ofNamespace selects the hash of one namespace, as client-go's sharding.NewSelector can.
type ofNamespace string

func (n ofNamespace) Matches(obj runtime.Object) (bool, error) {
	return obj.(metav1.Object).GetNamespace() == string(n), nil
}

func (n ofNamespace) String() string {
	if n == "" {
		return "" // everything
	}
	of := fnv.New64a()
	of.Write([]byte(n))
	return fmt.Sprintf("shardRange(object.metadata.namespace, '0x%016x', '0x%016x')", of.Sum64(), of.Sum64()+1)
}

// TestWithShardSelector: each informer of each factory has the objects of its shard alone.
func TestWithShardSelector(t *testing.T) {
	served := listwatchtest.New(t, listwatchtest.Pods())
	for _, p := range []*corev1.Pod{pod("ns", "a"), pod("ns", "b"), pod("other", "a")} {
		served.Create(p)
	}
	config := served.Server().Config()
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	dynamicClient, err := dynamicinformer.NewForConfig(config)
	require.NoError(t, err)
	metadataClient, err := metadatainformer.NewForConfig(config)
	require.NoError(t, err)
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	own := func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return adapted.FromClientset(client, &corev1.Pod{}, resync)
		})
	}
	typed := func(client kubernetes.Interface, selector ofNamespace) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithShardSelector(selector))
	}
	for name, makes := range map[string]func(selector ofNamespace) cache.SharedIndexInformer{
		"typed": func(s ofNamespace) cache.SharedIndexInformer {
			return typed(clientset, s).Core().V1().Pods().Informer()
		},
		"fake": func(s ofNamespace) cache.SharedIndexInformer {
			return typed(fake.NewClientset(pod("ns", "a"), pod("ns", "b"), pod("other", "a")), s).Core().V1().Pods().Informer()
		},
		"constructor": func(s ofNamespace) cache.SharedIndexInformer { return own(typed(clientset, s)) },
		"dynamic": func(s ofNamespace) cache.SharedIndexInformer {
			return dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(dynamicClient, 0, dynamicinformer.WithShardSelector(s)).ForResource(pods).Informer()
		},
		"metadata": func(s ofNamespace) cache.SharedIndexInformer {
			return metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, metadatainformer.WithShardSelector(s)).ForResource(pods).Informer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for selector, want := range map[ofNamespace][]string{"ns": {"ns/a", "ns/b"}, "other": {"other/a"}, "": {"ns/a", "ns/b", "other/a"}} {
				shared := makes(selector)
				stop, ended := make(chan struct{}), make(chan struct{})
				go func() { defer close(ended); shared.Run(stop) }()
				require.True(t, cache.WaitForCacheSync(stop, shared.HasSynced))
				require.ElementsMatch(t, want, shared.GetStore().ListKeys(), selector)
				close(stop)
				<-ended
			}
		})
	}
}

// TestAShardThatClientGosInformerHasNot: it has all objects, which is an error in the log.
func TestAShardThatClientGosInformerHasNot(t *testing.T) {
	var lines []string
	klog.SetLogger(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	t.Cleanup(klog.ClearLogger)
	f := informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithShardSelector(ofNamespace("ns")))
	f.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPodInformer(client, "ns", resync, nil)
	})
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], `"type"="*v1.Pod"`)
	require.Contains(t, lines[0], "has all objects: call clientgo.FromClientset")
}
