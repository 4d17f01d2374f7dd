package clientgo_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestATransformThatDropsManagedFields is told once of the option that does so for less; one that
// does more to one of the first objects is not.
func TestATransformThatDropsManagedFields(t *testing.T) {
	drops := func(obj any) (any, error) {
		obj.(metav1.Object).SetManagedFields(nil)
		return obj, nil
	}
	for name, row := range map[string]struct {
		transform cache.TransformFunc
		pods      int
		told      int
	}{
		"drops":  {drops, 30, 1},
		"of few": {drops, 19, 0},
		"a copy": {func(obj any) (any, error) { return drops(obj.(*corev1.Pod).DeepCopy()) }, 30, 1},
		"more of one of the first": {func(obj any) (any, error) {
			if obj.(*corev1.Pod).Name == "pod-10" {
				obj.(*corev1.Pod).Spec = corev1.PodSpec{}
			}
			return drops(obj)
		}, 30, 0},
		"nothing": {func(obj any) (any, error) { return obj, nil }, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				klog.SetLogger(funcr.New(func(_, line string) { told = append(told, line) }, funcr.Options{}))
				t.Cleanup(klog.ClearLogger)
				pods := listwatchtest.New(t, listwatchtest.Pods())
				for i := range row.pods {
					p := onNode("ns", fmt.Sprint("pod-", i), "n1")
					p.ManagedFields = []metav1.ManagedFieldsEntry{{
						Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
					}}
					pods.Create(p)
				}
				client, err := kubernetes.NewForConfig(pods.Server().Config())
				require.NoError(t, err)
				shared := clientgo.FromClientset(client, &corev1.Pod{}, 0)
				require.NoError(t, shared.SetTransform(row.transform))
				running(t, shared.RunWithContext)
				synctest.Wait()
				require.Len(t, shared.GetStore().List(), row.pods)
				require.Len(t, told, row.told, told)
			})
		})
	}
}
