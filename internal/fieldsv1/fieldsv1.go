// Package fieldsv1 writes managed fields for tests.
package fieldsv1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Of has the managed fields of this JSON. All releases of apimachinery read them from it, where the
// field Raw went with 0.38, and the function NewFieldsV1 came with 0.36.
func Of(text string) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	if err := fields.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return fields
}
