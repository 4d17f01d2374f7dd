package apiserver

import (
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// format is how a response is written: the encoding, and which view of the objects. It is
// comparable: watchers with equal formats share encoded events.
type format struct {
	encoding
	view representation
	rows metav1.IncludeObjectPolicy // objects in the rows of a table
	// headless: a table names no columns, since an event before it has.
	headless bool
}

// plainJSON is the format of a client that does not choose, and of errors before the choice.
var plainJSON = format{encoding: jsonEncoding{}}

// representation is a view of objects that the client chose with the "as" parameter of Accept.
type representation int

const (
	asItself representation = iota
	asMetadata
	asTable
)

// The kinds of objects in the view asMetadata, and of lists.
const oneMetadata, manyMetadata = "PartialObjectMetadata", "PartialObjectMetadataList"

// negotiate picks the first clause of the Accept header that this server speaks for objects like
// sample. As is the kind that the clause names; empty if the objects keep their own. Errors: 406,
// and 400 for an unknown includeObject.
func negotiate(r *http.Request, sample any) (f format, as string, err error) {
	rows := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	switch rows {
	case "":
		rows = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return plainJSON, "", apierror.BadRequest("unrecognized includeObject value: %q", rows)
	}
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return plainJSON, "", nil
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		f, ok := clauseFormat(clause)
		if !ok || !f.carries(f.view, sample) {
			continue
		}
		if f.view == asTable {
			f.rows = rows
		}
		return f, clause.Params["as"], nil
	}
	return plainJSON, "", notAcceptable("only the following media types are accepted: " + strings.Join(mediaTypes(sample), ", "))
}

// clauseFormat is the format that one clause of Accept asks for.
func clauseFormat(clause goautoneg.Accept) (f format, ok bool) {
	mediaType := clause.Type + "/" + clause.SubType
	f.encoding, ok = encodingOf(mediaType)
	if mediaType == "application/*" || mediaType == "*/*" {
		f, ok = plainJSON, true
	}
	as := clause.Params["as"]
	if !ok || as == "" {
		return f, ok
	}
	if clause.Params["g"] != metav1.GroupName || clause.Params["v"] != "v1" {
		return f, false
	}
	switch as {
	case oneMetadata, manyMetadata:
		f.view = asMetadata
	case "Table":
		f.view = asTable
	default:
		return f, false
	}
	return f, true
}
