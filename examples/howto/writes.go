package howto

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/store"
)

// Label sets a label of a pod, and returns once the copy has it.
func Label(ctx context.Context, core corev1client.PodInterface, pods *informer.Informer[*corev1.Pod], namespace, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		held, err := store.Find(pods, namespace, name)
		if err != nil {
			return err
		}
		change := held.DeepCopy() // objects of the copy are read-only
		metav1.SetMetaDataLabel(&change.ObjectMeta, "tier", "front")
		written, err := core.Update(ctx, change, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) { // "the object has been modified": the copy was behind
			newest, getErr := core.Get(ctx, name, metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			if waitErr := pods.WaitFor(ctx, newest); waitErr != nil {
				return waitErr
			}
		}
		if err != nil {
			return err
		}
		return pods.WaitFor(ctx, written)
	})
}
