package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/store"
)

// apiServices are the API servers behind this one. Client-go has no Go type of them.
func apiServices() (r anyResource) {
	r.Kind.Group, r.Kind.Version, r.Kind.Plural, r.Kind.Kind = "apiregistration.k8s.io", "v1", "apiservices", "APIService"
	r.Kind.New = func() store.Object { return &unstructured.Unstructured{} }
	r.Rules.BuiltIn, r.Rules.UnconditionalUpdate, r.Rules.PlainFinalizers = true, true, true
	r.Rules.Generation = collection.CountSpec
	r.View.Columns = []column{
		{Name: "Service", Description: "The reference to the service that hosts this API endpoint.", Value: serviceOf},
		{Name: "Available", Description: "Whether this service is available.", Value: availability},
		age,
	}
	cluster(&r)
	extension(&r)
	return r
}

func serviceOf(obj store.Object) any {
	content := obj.(*unstructured.Unstructured).Object
	namespace, _, _ := unstructured.NestedString(content, "spec", "service", "namespace")
	name, found, _ := unstructured.NestedString(content, "spec", "service", "name")
	if !found {
		return "Local"
	}
	return namespace + "/" + name
}

func availability(obj store.Object) any {
	conditions, _, _ := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		status, _ := condition["status"].(string)
		if reason, _ := condition["reason"].(string); status != "True" && reason != "" {
			return fmt.Sprintf("%s (%s)", status, reason)
		}
		return status
	}
	return "Unknown"
}
