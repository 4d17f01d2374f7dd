package apiserver

import (
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// format is how a response is written: the encoding, and which view of the objects.
type format struct {
	protobuf bool
	view     representation
	rows     metav1.IncludeObjectPolicy // what rows of a table carry
}

// representation is a view of objects that the client chose with the "as" parameter of Accept.
type representation int

const (
	asItself representation = iota
	asMetadata
	asTable
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// contentType is the header of a response; stream says that it is a watch.
func (f format) contentType(stream bool) string {
	switch {
	case f.protobuf && stream:
		return protobufType + ";stream=watch"
	case f.protobuf:
		return protobufType
	}
	return jsonType
}

// negotiate picks the first thing in the Accept header that this server speaks for a resource. Errors: 406, and 400
// for an unknown includeObject.
func negotiate(r *http.Request, protobuf bool) (format, error) {
	rows := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	switch rows {
	case "":
		rows = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return format{}, apierror.BadRequest("unrecognized includeObject value: %q", rows)
	}
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return format{}, nil
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		if f, ok := clauseFormat(clause, protobuf); ok {
			if f.view == asTable {
				f.rows = rows
			}
			return f, nil
		}
	}
	accepted := jsonType
	if protobuf {
		accepted += ", " + protobufType
	}
	return format{}, notAcceptable(accepted)
}

func clauseFormat(clause goautoneg.Accept, protobuf bool) (f format, ok bool) {
	switch clause.Type + "/" + clause.SubType {
	case jsonType, "application/*", "*/*":
	case protobufType:
		f.protobuf = true
	default:
		return f, false
	}
	as := clause.Params["as"]
	if as == "" {
		return f, protobuf || !f.protobuf
	}
	if clause.Params["g"] != metav1.GroupName || clause.Params["v"] != "v1" {
		return f, false
	}
	switch as {
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		f.view = asMetadata
		return f, true
	case "Table":
		f.view = asTable
		return f, !f.protobuf // its cells are free-form values
	}
	return f, false
}
