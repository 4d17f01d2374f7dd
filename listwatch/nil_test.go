package listwatch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
)

// TestNilIsNamed: the constructor names a nil argument, before a request would dereference it. A
// fake clientset's REST client is a nil pointer in an interface.
func TestNilIsNamed(t *testing.T) {
	list := func(context.Context, metav1.ListOptions) (*corev1.PodList, error) { return nil, nil }
	watches := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, nil }
	lw := listwatch.FromFuncs[*corev1.Pod](list, watches)
	for want, construct := range map[string]func(){
		"listwatch: FromClient: the client is nil (<nil>): a fake clientset of client-go has none: read it with FromFuncs, or use the package listwatchtest": func() {
			listwatch.FromClient[corev1.Pod](nil, "pods")
		},
		"listwatch: FromClient: the client is nil (*rest.RESTClient): a fake clientset of client-go has none: read it with FromFuncs, or use the package listwatchtest": func() {
			listwatch.FromClient[corev1.Pod](fake.NewClientset().CoreV1().RESTClient(), "pods")
		},
		`listwatch: FromClient: the resource is empty: give its plural name, such as "pods"`: func() {
			listwatch.FromClient[corev1.Pod](&rest.RESTClient{}, "")
		},
		"listwatch: FromFuncs: the function that lists is nil": func() {
			listwatch.FromFuncs[*corev1.Pod, *corev1.PodList](nil, watches)
		},
		"listwatch: FromFuncs: the function that watches is nil": func() { listwatch.FromFuncs[*corev1.Pod](list, nil) },
		"listwatch: FromClientGo: the ListerWatcher is nil (<nil>)": func() {
			listwatch.FromClientGo[*corev1.Pod](nil)
		},
		"listwatch: FromClientGo: the ListerWatcher is nil (*cache.ListWatch)": func() {
			listwatch.FromClientGo[*corev1.Pod]((*cache.ListWatch)(nil))
		},
		"listwatch: ToClientGo: the ListerWatcher is nil (<nil>)": func() { listwatch.ToClientGo[*corev1.Pod](nil) },
		"listwatch: Project: the source is nil (<nil>)": func() {
			listwatch.Project(nil, func(p *corev1.Pod) *corev1.Pod { return p })
		},
		"listwatch: Project: the function is nil": func() { listwatch.Project[*corev1.Pod, *corev1.Pod](lw, nil) },
	} {
		require.PanicsWithValue(t, want, construct)
	}
}
