package finalizer

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/store"
)

// Patch is the Patch of a REST client for [Keep], as typed clients have one. It is for a custom
// resource with a Go type O, which needs no scheme. resource is the plural name in the path, and
// namespace is empty for a resource in cluster scope:
//
//	patch := finalizer.Patch[v1.Widget](client, "widgets", widget.Namespace)
//
// listwatch.NewRESTClient makes such a client.
func Patch[O any, T interface {
	*O
	store.Object
}](client rest.Interface, resource, namespace string) func(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error) {
	return func(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error) {
		answer := client.Patch(kind).NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).SubResource(subresources...).
			SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).
			SetHeader("Accept", "application/json").Body(data).Do(ctx)
		if err := answer.Error(); err != nil { // with the server's Status, which Raw leaves out
			return nil, err
		}
		document, err := answer.Raw()
		if err != nil {
			return nil, err
		}
		obj := T(new(O))
		return obj, json.Unmarshal(document, obj)
	}
}
