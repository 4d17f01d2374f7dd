package reflector_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestProbesAskByName: an API server reads one key for a name, and a whole collection for a
// selector. In a quiet hour it is asked by selector each 15 minutes alone, also for a copy that
// holds nothing.
func TestProbesAskByName(t *testing.T) {
	for _, count := range []int{0, 20} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := listwatchtest.New(t, listwatchtest.Of[*corev1.Pod]())
				for i := range count {
					server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Namespace: "shop", Name: fmt.Sprint("web-", i), Labels: map[string]string{"app": "web"},
					}})
				}
				server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}})
				client, err := listwatch.NewRESTClient(server.Server().Config(), corev1.SchemeGroupVersion)
				require.NoError(t, err)
				source := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Labels(labels.SelectorFromSet(labels.Set{"app": "web"})))
				r, pods := follow(t, source)
				time.Sleep(time.Minute) // of the simulated clock
				before := len(server.Server().Requests(listwatchtest.List))
				time.Sleep(time.Hour)
				synctest.Wait()
				byName, bySelector := 0, 0
				for _, request := range server.Server().Requests(listwatchtest.List)[before:] {
					if request.Options.FieldSelector != "" {
						byName++
					} else {
						bySelector++
					}
				}
				require.GreaterOrEqual(t, byName, 20)
				require.LessOrEqual(t, bySelector, 4)
				require.Equal(t, count, len(uids(pods)))
				require.NoError(t, r.Ready(3*time.Minute))
			})
		})
	}
}
