package collection

import (
	"encoding/json"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// The path of the library of field paths has its major version, which is not the same for all
// releases of apimachinery. So its types are inferred here, and never named: K is
// fieldpath.APIVersion, F fieldpath.Filter and S fieldpath.Set.

// filtersOf makes the last argument of a constructor of field managers.
func filtersOf[K comparable, F any](func(
	managedfields.TypeConverter, runtime.ObjectConvertor, runtime.ObjectDefaulter, runtime.ObjectCreater,
	schema.GroupVersionKind, schema.GroupVersion, string, map[K]F,
) (*managedfields.FieldManager, error)) map[K]F {
	return map[K]F{}
}

// exclude adds a filter that leaves fields out.
func exclude[K ~string, F filter[S], S any](filters map[K]F, version string, fields []string) {
	all := map[string]struct{}{}
	for _, field := range fields {
		all["f:"+field] = struct{}{} // as metadata.managedFields have a set
	}
	text, err := json.Marshal(all)
	set := new(S)
	if err == nil {
		err = any(set).(interface{ FromJSON(io.Reader) error }).FromJSON(strings.NewReader(string(text)))
	}
	if err != nil {
		panic(err) // the fields are ours
	}
	filters[K(version)] = any(excluding[S]{set}).(F)
}

type filter[S any] interface{ Filter(*S) *S }

type excluding[S any] struct{ fields *S }

// Filter implements fieldpath.Filter.
func (e excluding[S]) Filter(set *S) *S {
	return any(set).(interface{ RecursiveDifference(*S) *S }).RecursiveDifference(e.fields)
}
