package builtin

import (
	_ "embed" // the columns
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

type column = apiserver.Column[store.Object]

// columnsText begins with a description of its form.
//
//go:embed columns.txt
var columnsText string

// columns are those of columnsText, by kind.
var columns = sync.OnceValue(func() map[string][]column {
	all, kind := map[string][]column{}, ""
	for line := range strings.Lines(strings.ReplaceAll(columnsText, "\n\t\t", "")) {
		text, isColumn := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case isColumn:
			all[kind] = append(all[kind], parseColumn(text))
		case !strings.HasPrefix(text, "#"):
			kind = text
		}
	}
	return all
})

var (
	age       = apiserver.AgeColumn[store.Object]()
	createdAt = column{
		Name: "Created At", Type: "date", Description: age.Description,
		Value: func(obj store.Object) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}
)

// parseColumn reads a heading, its attributes in parentheses, and behind " = " the cell.
func parseColumn(text string) column {
	head, cell, _ := strings.Cut(text, " = ")
	heading, attributes, _ := strings.Cut(strings.TrimSuffix(head, ")"), " (")
	switch heading {
	case age.Name:
		return age
	case createdAt.Name:
		return createdAt
	}
	if attributes == "" {
		heading = head // which may end with a parenthesis of its own
	}
	c := column{Name: heading}
	if heading == "Name" {
		c.Description = metav1.ObjectMeta{}.SwaggerDoc()["name"]
	}
	bare := false
	for attribute := range strings.SplitSeq(attributes, ", ") {
		switch attribute {
		case "wide":
			c.Wide = true
		case "name":
			c.Format = attribute
		case "integer", "boolean":
			c.Type, bare = attribute, true
		case "bare":
			bare = true
		}
	}
	parsed := template.Must(template.New(heading).Funcs(functions).Parse(cell))
	c.Value = func(obj store.Object) any { return valueOf(parsed, obj, bare) }
	return c
}

// valueOf returns a cell. It is unknown if the object has nothing to make it of, such as a metric
// without its source.
func valueOf(cell *template.Template, obj store.Object, bare bool) any {
	var b strings.Builder
	if cell.Execute(&b, obj) != nil {
		return unknown
	}
	text := b.String()
	if !bare {
		return text
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number
	}
	switch text {
	case "true", "false":
		return text == "true"
	}
	return text
}

const (
	none    = "<none>"
	unknown = "<unknown>"
)

// functions are those that cells may call, beside those of text/template.
var functions = template.FuncMap{
	"accessModes": accessModes, "controller": controller, "endpointAddresses": endpointAddresses, "externalIP": externalIP,
	"ingressHosts": ingressHosts, "nodeRoles": nodeRoles,
	"quotaUse": quotaUse, "scalingTargets": scalingTargets, "sliceAddresses": sliceAddresses, "slicePorts": slicePorts,

	"add": func(a, b int) int { return a + b }, "default": orElse, "duration": duration.HumanDuration,
	"each": each, "join": join, "labels": labels.FormatLabels,
	"lower": strings.ToLower, "number": func(n int32) int32 { return n }, "seconds": seconds, "selector": metav1.FormatLabelSelector, "since": since, "title": title,
	"trim": strings.TrimSpace, "where": where,
}
