package howto

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

type object = *unstructured.Unstructured

// Widgets is a copy of one custom resource, whose definition may come later.
func Widgets(config *rest.Config) (*informer.Informer[object], error) {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	client, err := listwatch.NewRESTClient(config, group)
	if err != nil {
		return nil, err
	}
	return informer.New(listwatch.FromClient[unstructured.Unstructured](client, "widgets")), nil
}

// Follow tells of the objects of each custom resource, while its definition is established.
func Follow(ctx context.Context, set *informer.Set, tell func(informer.Event[object])) error {
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	crds, err := informer.Acquire[unstructured.Unstructured](set, definitions)
	if err != nil {
		return err
	}
	defer crds.Close()
	leases := map[string]*informer.Lease[object]{}
	for e := range crds.Events(ctx) {
		resource, established := resourceOf(e.New)
		lease := leases[e.Key]
		switch {
		case established && lease == nil:
			if lease, err = informer.Acquire[unstructured.Unstructured](set, resource); err != nil {
				return err
			}
			leases[e.Key] = lease
			if _, err := lease.AddHandler(tell); err != nil {
				return err
			}
		case !established && lease != nil:
			lease.Close() // ends its watch, and frees its objects
			delete(leases, e.Key)
		}
	}
	return nil
}

// resourceOf reads the first served version of a definition. There is none once it is deleted.
func resourceOf(crd object) (resource schema.GroupVersionResource, established bool) {
	if crd == nil || crd.GetDeletionTimestamp() != nil {
		return resource, false
	}
	resource.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	resource.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true && resource.Version == "" {
			resource.Version, _ = v["name"].(string)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" {
			established = c["status"] == "True" && resource.Version != ""
		}
	}
	return resource, established
}
