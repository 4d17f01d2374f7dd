package metadatainformer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo/metadatainformer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store/packed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": name}, Annotations: map[string]string{"team": "blue"},
	}
}

func served(t *testing.T) *rest.Config {
	collection := listwatchtest.New(t, listwatchtest.Pods())
	for _, of := range []metav1.ObjectMeta{metaOf("ns", "a"), metaOf("ns", "b"), metaOf("other", "a")} {
		collection.Create(&corev1.Pod{ObjectMeta: of})
	}
	return collection.Server().Config()
}

// clients are the three kinds of metadata client that a factory meets.
var clients = map[string]func(t *testing.T) (metadata.Interface, error){
	"NewForConfig": func(t *testing.T) (metadata.Interface, error) { return metadatainformer.NewForConfig(served(t)) },
	"client-go":    func(t *testing.T) (metadata.Interface, error) { return metadata.NewForConfig(served(t)) },
	"fake": func(*testing.T) (metadata.Interface, error) {
		s := fake.NewTestScheme()
		if err := metav1.AddMetaToScheme(s); err != nil {
			return nil, err
		}
		kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		return fake.NewSimpleMetadataClient(s,
			&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metaOf("ns", "a")},
			&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metaOf("ns", "b")},
			&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metaOf("other", "a")}), nil
	},
}

// TestFactory: listers, namespaces, selectors, indexes and transforms, with each kind of client. A
// transform writes into its own copy: the informer of another factory does not see it.
func TestFactory(t *testing.T) {
	packed.SetHot(0)
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			client, err := newClient(t)
			require.NoError(t, err)
			plain := metadatainformer.NewSharedInformerFactory(client, 0)
			transformed := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0, metadatainformer.WithTransform(func(obj any) (any, error) {
				obj.(*metav1.PartialObjectMetadata).Annotations["team"] = "red"
				return obj, nil
			}))
			atRest := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0, metadatainformer.WithPacked(packed.Like))
			narrow := metadatainformer.NewFilteredSharedInformerFactory(client, 0, "ns", func(o *metav1.ListOptions) {
				o.LabelSelector = "app=a"
			})
			ctx, cancel := context.WithCancel(context.Background())
			teams := func(f metadatainformer.SharedInformerFactory) map[string]string {
				shared := f.ForResource(pods).Informer()
				f.Start(ctx.Done())
				t.Cleanup(func() { cancel(); f.Shutdown() })
				require.True(t, f.WaitForCacheSync(ctx.Done())[pods])
				found := map[string]string{}
				for _, key := range shared.GetStore().ListKeys() {
					namespace, name, err := cache.SplitMetaNamespaceKey(key)
					require.NoError(t, err)
					obj, err := f.ForResource(pods).Lister().ByNamespace(namespace).Get(name)
					require.NoError(t, err)
					found[key] = obj.(*metav1.PartialObjectMetadata).Annotations["team"]
				}
				return found
			}
			require.Equal(t, map[string]string{"ns/a": "red", "ns/b": "red", "other/a": "red"}, teams(transformed))
			require.Equal(t, map[string]string{"ns/a": "blue", "ns/b": "blue", "other/a": "blue"}, teams(plain))
			require.Equal(t, map[string]string{"ns/a": "blue", "ns/b": "blue", "other/a": "blue"}, teams(atRest))
			all, err := atRest.ForResource(pods).Lister().List(labels.Everything())
			require.NoError(t, err)
			again, err := atRest.ForResource(pods).Lister().List(labels.Everything())
			require.NoError(t, err)
			require.ElementsMatch(t, all, again)
			for _, obj := range again {
				require.NotSame(t, all[0], obj, "it was decoded anew")
			}
			require.Equal(t, map[string]string{"ns/a": "blue"}, teams(narrow))

			byApp := func(obj any) ([]string, error) { return []string{obj.(metav1.Object).GetLabels()["app"]}, nil }
			indexed := metadatainformer.NewFilteredMetadataInformer(client, pods, "", 0, cache.Indexers{"app": byApp}, nil)
			require.Contains(t, indexed.Informer().GetIndexer().GetIndexers(), "app")
		})
	}
}

// TestGeneratedNames: a fake makes no names of generateName.
func TestGeneratedNames(t *testing.T) {
	s := fake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	f := metadatainformer.NewSharedInformerFactory(fake.NewSimpleMetadataClient(s, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metaOf("ns", ""),
	}), 0)
	shared := f.ForResource(pods).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	defer f.Shutdown()
	defer cancel()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), shared.HasSynced))
	require.Equal(t, []string{"ns/"}, shared.GetStore().ListKeys())
}

func TestBadSelectors(t *testing.T) {
	client, err := clients["fake"](t)
	require.NoError(t, err)
	f := metadatainformer.NewFilteredSharedInformerFactory(client, 0, "", func(o *metav1.ListOptions) { o.FieldSelector = "a" })
	require.PanicsWithError(t, `clientgo: Tweak: field selector "a": invalid selector: 'a'; can't understand 'a'`, func() {
		f.ForResource(pods)
	})
	_, err = metadatainformer.NewForConfig(&rest.Config{Host: "://"})
	require.Error(t, err)
}
