package crd

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// fields are the selectable fields of a version.
func fields(v version) (all []watchcache.Field[*document], err error) {
	for _, f := range v.SelectableFields {
		path := jsonpath.New("").AllowMissingKeys(true)
		if err := path.Parse("{" + f.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("the JSON path %q cannot be parsed: %w", f.JSONPath, err)
		}
		var mu sync.Mutex // a path keeps its place while it is evaluated
		all = append(all, watchcache.Field[*document]{
			Label: strings.TrimPrefix(f.JSONPath, "."),
			Value: func(obj *document) string {
				mu.Lock()
				defer mu.Unlock()
				found, err := path.FindResults(obj.Object)
				if err != nil || len(found) == 0 || len(found[0]) == 0 || found[0][0].Interface() == nil {
					return ""
				}
				return fmt.Sprint(found[0][0].Interface())
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
	for _, definition := range given {
		c, err := newColumn(definition)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// newColumn is a column by the API server's own code, of whose tables it is the second.
func newColumn(definition apiextensionsv1.CustomResourceColumnDefinition) (c apiserver.Column[*document], err error) {
	convertor, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{definition})
	if err != nil {
		return c, err
	}
	table, err := convertor.ConvertToTable(context.Background(), &document{}, nil)
	if err != nil {
		return c, err
	}
	head := table.ColumnDefinitions[1]
	var mu sync.Mutex // a path keeps its place while it is evaluated
	return apiserver.Column[*document]{
		Name: head.Name, Type: head.Type, Format: head.Format, Description: head.Description, Wide: head.Priority > 0,
		Value: func(obj *document) any {
			mu.Lock()
			defer mu.Unlock()
			table, err := convertor.ConvertToTable(context.Background(), obj, nil)
			if err != nil || len(table.Rows) != 1 {
				return nil
			}
			return table.Rows[0].Cells[1]
		},
	}, nil
}
