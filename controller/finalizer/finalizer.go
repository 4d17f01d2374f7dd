// Package finalizer cleans up after an object before the API server lets it go.
//
//	func reconcile(ctx context.Context, key string) error {
//		widget, ok := widgets.Get(key)
//		if !ok {
//			return nil
//		}
//		patch := client.Resource(resource).Namespace(widget.GetNamespace()).Patch
//		if live, err := finalizer.Keep(ctx, widget, "example.com/bucket", patch, deleteBucket); !live {
//			return err
//		}
//		…
//	}
//
// Nothing is made for an object before it has the finalizer. So its deletion waits for the cleanup,
// whether or not the program runs then.
package finalizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// Keep makes sure that obj, as a copy has it, has the finalizer name while it is live. Live is true
// if obj has it, and the caller may go on. Otherwise the caller returns err:
//
//   - An object without the finalizer is patched. The change that the patch makes brings the next
//     call.
//   - An object that is being deleted is cleaned up, and then the finalizer is taken away. An error
//     of cleanup is returned, and the finalizer stays. If the patch fails, cleanup runs again.
//   - An object that is being deleted and lacks the finalizer is left alone.
//
// patch is the Patch of a client for obj's namespace: a typed, dynamic or metadata client of
// client-go. The patch has the resource version of obj and its whole list of finalizers. So it
// loses no finalizer of another program: if obj is not the newest version, the patch is a conflict,
// which Keep returns. An object that is gone is no error.
func Keep[T store.Object](ctx context.Context, obj T, name string,
	patch func(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error),
	cleanup func(ctx context.Context, obj T) error,
) (live bool, err error) {
	if patch == nil || cleanup == nil || !strings.Contains(name, "/") {
		return false, errors.New("finalizer: Keep: give a patch, a cleanup, and a name with a domain such as example.com/name")
	}
	present := obj.GetFinalizers()
	has := slices.Contains(present, name)
	deleted := obj.GetDeletionTimestamp() != nil
	var wanted []string
	switch {
	case has != deleted:
		return has, nil
	case deleted:
		if err := cleanup(ctx, obj); err != nil {
			return false, fmt.Errorf("finalizer: clean up %s: %w", store.KeyOf(obj), err)
		}
		wanted = slices.DeleteFunc(slices.Clone(present), func(other string) bool { return other == name })
	default:
		wanted = append(slices.Clone(present), name)
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": wanted,
	}})
	if err == nil {
		_, err = patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("finalizer: patch the finalizers of %s: %w", store.KeyOf(obj), err)
	}
	return false, nil
}
