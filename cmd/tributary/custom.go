package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/jsonpath"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/watchcache"
)

type definition = apiextensionsv1.CustomResourceDefinition

const (
	// definitionsPath is where kube-apiserver keeps definitions.
	definitionsPath = "apiextensions.k8s.io/customresourcedefinitions"
	definitionKind  = "CustomResourceDefinition"
)

// fromFile reads the custom resources of a file of definitions, in YAML or JSON.
func fromFile(path string) ([]resource, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	var all []resource
	for number := 1; ; number++ {
		var d definition
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", path, number, err)
		}
		if d.Kind == "" && d.Name == "" {
			continue // nothing but comments
		}
		if d.Kind != definitionKind {
			return nil, fmt.Errorf("%s: document %d is a %s: a file for --resource has %ss", path, number, d.Kind, definitionKind)
		}
		r, err := custom(&d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no %s", path, definitionKind)
	}
	return all, nil
}

// stored reads the definitions that an etcd has, and which of them cannot be served. kube-apiserver
// stores them as v1beta1 still, so they are converted, by its own code.
func stored(ctx context.Context, client *clientv3.Client, prefix string) (all []resource, skipped []error, err error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	from := resource{path: definitionsPath}.prefix(prefix)
	for document, err := range etcd.New[unstructured.Unstructured](client, from).List(ctx, metav1.ListOptions{}).Items {
		if err != nil && !errors.As(err, new(*listwatch.DecodeError)) {
			return nil, nil, err
		}
		var r resource
		if err == nil {
			r, err = converted(scheme, document)
		}
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		all = append(all, r)
	}
	return all, skipped, nil
}

// converted describes the resource of a definition of any version.
func converted(scheme *runtime.Scheme, document *unstructured.Unstructured) (resource, error) {
	text, err := document.MarshalJSON()
	if err != nil {
		return resource{}, fmt.Errorf("%s: %w", document.GetName(), err)
	}
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(), text)
	if err == nil {
		obj, err = scheme.ConvertToVersion(obj, apiextensionsv1.SchemeGroupVersion)
	}
	if err != nil {
		return resource{}, fmt.Errorf("%s: it is no %s that is known: %w", document.GetName(), definitionKind, err)
	}
	d, ok := obj.(*definition)
	if !ok {
		return resource{}, fmt.Errorf("%s is a %T", document.GetName(), obj)
	}
	return custom(d)
}

// custom describes the resource that a definition defines, in its stored version.
func custom(d *definition) (resource, error) {
	for _, version := range d.Spec.Versions {
		if !version.Storage {
			continue
		}
		if !version.Served {
			return resource{}, fmt.Errorf("%s: the version %s is stored and not served: nothing is converted", d.Name, version.Name)
		}
		description, err := describe(version)
		if err != nil {
			return resource{}, fmt.Errorf("%s: %w", d.Name, err)
		}
		return resource{
			group: d.Spec.Group, version: version.Name, plural: d.Spec.Names.Plural, kind: d.Spec.Names.Kind,
			shortNames: d.Spec.Names.ShortNames, categories: d.Spec.Names.Categories, clusterScoped: d.Spec.Scope == apiextensionsv1.ClusterScoped,
			path: d.Spec.Group + "/" + d.Spec.Names.Plural,
			add:  func(s *site, r resource) error { return addAny(s, r, newDocument, description) },
		}, nil
	}
	return resource{}, fmt.Errorf("%s: no version has storage: true", d.Name)
}

// describe makes the columns and the selectable fields of a version.
func describe(version apiextensionsv1.CustomResourceDefinitionVersion) (r anyKind, err error) {
	for _, f := range version.SelectableFields {
		value, err := evaluator(f.JSONPath)
		if err != nil {
			return r, err
		}
		r.Fields = append(r.Fields, watchcache.Field[object]{
			Label: strings.TrimPrefix(f.JSONPath, "."),
			Value: func(obj object) string {
				if found := value(obj); found != nil {
					return fmt.Sprint(found)
				}
				return ""
			},
		})
	}
	for _, c := range version.AdditionalPrinterColumns {
		value, err := evaluator(c.JSONPath)
		if err != nil {
			return r, err
		}
		isDate := c.Type == "date"
		r.Columns = append(r.Columns, watchcache.Column[object]{Name: c.Name, Wide: c.Priority > 0, Value: func(obj object) any {
			if isDate {
				return age(value(obj))
			}
			return value(obj)
		}})
	}
	if len(r.Columns) > 0 {
		r.Columns = append(r.Columns, watchcache.AgeColumn[object]())
	}
	return r, nil
}

// evaluator evaluates a JSON path of a definition: a value, or nil if an object has none there.
func evaluator(expression string) (func(object) any, error) {
	parsed := jsonpath.New("").AllowMissingKeys(true)
	if err := parsed.Parse("{" + expression + "}"); err != nil {
		return nil, fmt.Errorf("the JSON path %q cannot be parsed: %w", expression, err)
	}
	var mu sync.Mutex // a JSONPath keeps its place while it is evaluated
	return func(obj object) any {
		mu.Lock()
		defer mu.Unlock()
		found, err := parsed.FindResults(obj.(*unstructured.Unstructured).Object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 {
			return nil
		}
		switch value := found[0][0].Interface().(type) {
		case string, bool, int64, float64, nil:
			return value
		default:
			return fmt.Sprint(value)
		}
	}, nil
}

// age is how long ago a date was, as kubectl shows it.
func age(date any) any {
	text, ok := date.(string)
	if !ok {
		return nil
	}
	var at metav1.Time
	if err := at.UnmarshalQueryParameter(text); err != nil {
		return "<invalid>"
	}
	return table.ConvertToHumanReadableDateType(at)
}
