package across_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/informer/clientgo/metadatainformer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestNothingIsPromoted: what is handed out embeds no value of client-go's, from which it would
// have a method that a new release adds, on another informer than ours.
func TestNothingIsPromoted(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	theirs := listwatch.ToClientGo(pods.ListerWatcher())
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	made := clientgo.NewInformer(theirs, &corev1.Pod{}, 0, nil)
	registration, err := made.AddEventHandler(cache.ResourceEventHandlerFuncs{})
	require.NoError(t, err)
	content, controller := clientgo.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: theirs, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{},
	})
	typed := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	dynamic := dynamicinformer.NewDynamicSharedInformerFactory(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), 0)
	scheme := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	metadata := metadatainformer.NewSharedInformerFactory(metadatafake.NewSimpleMetadataClient(scheme), 0)
	for name, value := range map[string]any{
		"informer": made, "registration": registration, "controller of an informer": made.GetController(),
		"store": content, "controller": controller, "adapted": clientgo.Informer(informer.New(pods.ListerWatcher())),
		"controller of a queue": clientgo.New(&cache.Config{
			ListerWatcher: theirs, ObjectType: &corev1.Pod{}, Queue: cache.NewRealFIFO(cache.MetaNamespaceKeyFunc, cache.NewStore(cache.MetaNamespaceKeyFunc), nil),
		}),
		"typed": typed, "dynamic": dynamic, "metadata": metadata,
		"dynamic informer": dynamic.ForResource(resource), "metadata informer": metadata.ForResource(resource),
	} {
		requireOwn(t, name, reflect.ValueOf(value))
	}
	// The factory that client-go's groups get from ours.
	requireOwn(t, "factory of a group", reflect.ValueOf(typed.Core()).Elem().FieldByName("factory"))
}

func requireOwn(t *testing.T, path string, value reflect.Value) {
	t.Helper()
	for value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	require.True(t, value.IsValid(), "%s is nil", path)
	require.True(t, strings.HasPrefix(value.Type().PkgPath(), "github.com/tributary-go/tributary/"), "%s is a %s", path, value.Type())
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.Anonymous {
			requireOwn(t, path+"."+field.Name, value.Field(i))
		}
	}
}
