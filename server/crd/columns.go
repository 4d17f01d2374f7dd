package crd

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// fields are the selectable fields of a version.
func fields(v version) (all []watchcache.Field[*document], err error) {
	for _, f := range v.SelectableFields {
		p, err := parsePath(f.JSONPath)
		if err != nil {
			return nil, err
		}
		all = append(all, watchcache.Field[*document]{
			Label: strings.TrimPrefix(f.JSONPath, "."),
			Value: func(obj *document) string {
				if found, ok := p.find(obj); ok && found != nil {
					return fmt.Sprint(found)
				}
				return ""
			},
		})
	}
	return all, nil
}

// columns are the columns of a version. Without any, there is the age.
func columns(v version) (all []apiserver.Column[*document], err error) {
	given := v.AdditionalPrinterColumns
	if len(given) == 0 {
		given = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
			Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		}}
	}
	for _, c := range given {
		p, err := parsePath(c.JSONPath)
		if err != nil {
			return nil, err
		}
		if c.Description == "" {
			c.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		all = append(all, apiserver.Column[*document]{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Wide: c.Priority > 0,
			Value: func(obj *document) any { return p.cell(c.Type, obj) },
		})
	}
	return all, nil
}

// path is a JSON path of a definition.
type path struct {
	mu     sync.Mutex // parsed keeps its place while it is evaluated
	parsed *jsonpath.JSONPath
}

func parsePath(expression string) (*path, error) {
	p := &path{parsed: jsonpath.New("").AllowMissingKeys(true)}
	if err := p.parsed.Parse("{" + expression + "}"); err != nil {
		return nil, fmt.Errorf("the JSON path %q cannot be parsed: %w", expression, err)
	}
	return p, nil
}

// find returns the first value under the path.
func (p *path) find(obj *document) (value any, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, err := p.parsed.FindResults(obj.Object)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil, false
	}
	return found[0][0].Interface(), true
}

// cell is the first value under the path in the form of a type of OpenAPI; nil if it has none.
func (p *path) cell(kind string, obj *document) any {
	value, ok := p.find(obj)
	if !ok {
		return nil
	}
	switch typed := value.(type) {
	case nil:
		if kind != "string" {
			return nil
		}
	case string:
		switch kind {
		case "string":
			return typed
		case "date":
			return age(typed)
		}
	case int64:
		switch kind {
		case "integer":
			return typed
		case "number":
			return float64(typed)
		}
	case float64:
		switch kind {
		case "integer":
			return int64(typed)
		case "number":
			return typed
		}
	case bool:
		if kind == "boolean" {
			return typed
		}
	}
	if kind != "string" {
		return nil
	}
	var text bytes.Buffer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parsed.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
		return nil
	}
	return text.String()
}

// age is how long ago a date was, as kubectl shows it.
func age(date string) any {
	var at metav1.Time
	if err := at.UnmarshalQueryParameter(date); err != nil {
		return "<invalid>"
	}
	return table.ConvertToHumanReadableDateType(at)
}
