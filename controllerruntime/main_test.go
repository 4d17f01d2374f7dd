package controllerruntime_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store/packed"
)

// packAll is the variable under which the tests pack all kinds.
const packAll = "TRIBUTARY_TEST_PACKED"

// heard is what has been logged since the last call of hear.
var heard struct {
	sync.Mutex
	lines string
}

// hear returns a function for what is logged from now on.
func hear() (logged func() string) {
	heard.Lock()
	defer heard.Unlock()
	heard.lines = ""
	return func() string {
		heard.Lock()
		defer heard.Unlock()
		return heard.lines
	}
}

func TestMain(m *testing.M) {
	sharing.FirstBytes = 0 // so that few objects are enough
	log.SetLogger(funcr.New(func(_, line string) {
		heard.Lock()
		defer heard.Unlock()
		heard.lines += line + "\n"
	}, funcr.Options{}))
	goleak.VerifyTestMain(m)
}

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return m
}

// newCache makes a cache of a fake's pods.
func newCache(
	t *testing.T, pods *listwatchtest.Collection[*corev1.Pod], options cache.Options, own ...controllerruntime.Option,
) *controllerruntime.Cache {
	t.Helper()
	options.Mapper = mapper()
	if os.Getenv(packAll) != "" {
		own = append(own, controllerruntime.Packed(packed.Like))
	}
	made, err := controllerruntime.NewCacheWith(own...)(pods.Server().Config(), options)
	require.NoError(t, err)
	return made.(*controllerruntime.Cache)
}

// start runs a cache until the test ends.
func start(t *testing.T, c cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	require.True(t, c.WaitForCacheSync(t.Context()))
}

// list returns the names of the pods that options select.
func list(t *testing.T, c client.Reader, options ...client.ListOption) (names []string) {
	t.Helper()
	var found corev1.PodList
	require.NoError(t, c.List(t.Context(), &found, options...))
	for _, p := range found.Items {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}
