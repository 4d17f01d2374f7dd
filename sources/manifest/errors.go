package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/sources/internal/limit"
)

var (
	// ErrTooLarge refuses a manifest of MaxSize bytes or more, one that expands too much when it is
	// parsed, and one that exceeds another limit of the package.
	ErrTooLarge = limit.ErrTooLarge
	// ErrEmpty refuses a manifest without a document. To declare that there are no pods, write a
	// PodList without items.
	ErrEmpty = limit.ErrEmpty
)

// Error is a manifest, or one document or item of it, that gave no pod. Its text names the place
// and the reason. It never quotes the manifest, which may hold credentials.
type Error struct {
	Path     string // the file, or the URL without user and query
	Document int    // which document of the stream, from 1; 0: not known
	Line     int    // the line of the fault, or else of the document, from 1; 0: not known
	Item     int    // which item of a list, from 1; 0 outside of a list
	Pod      string // namespace/name of the pod, if it has a valid one
	Err      error  // the reason

	key, digest string // see Part
}

// Part identifies the rejected part, so that a reader can tell which objects it may stand for. The
// key is the namespace/name of the object that it declares. The key is empty if no valid name can
// be read, or if the part declares no object of the wanted kind. The digest is a hash of the part's
// bytes.
func (e *Error) Part() (key, digest string) { return e.key, e.digest }

func (e *Error) Error() string {
	var place strings.Builder
	place.WriteString(e.Path)
	for _, part := range []struct {
		name string
		n    int
	}{{"document", e.Document}, {"line", e.Line}, {"item", e.Item}} {
		if part.n > 0 {
			fmt.Fprintf(&place, ", %s %d", part.name, part.n)
		}
	}
	if e.Pod != "" {
		fmt.Fprintf(&place, ": pod %s", e.Pod)
	}
	return fmt.Sprintf("%s: %v", place.String(), e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Fields are the paths of the wrong fields, such as spec.containers[0].image or
// metadata.annotations[key]. There are none if the reason is about no field. The keys of maps are
// the manifest's.
func (e *Error) Fields() []string {
	var faults interface{ fields() []string }
	if errors.As(e.Err, &faults) {
		return faults.fields()
	}
	return nil
}

// maxFaults and maxFaultText bound the text of an error, however many faults a manifest has.
const (
	maxFaults    = 32
	maxFaultText = 1024
)

// fieldFaults are the wrong fields of a pod, each with its reason and without its value.
type fieldFaults field.ErrorList

func (f fieldFaults) Error() string {
	var texts []string
	for _, fault := range f[:min(len(f), maxFaults)] {
		clean := *fault
		clean.BadValue = field.OmitValueType{}
		texts = append(texts, clip(clean.Error()))
	}
	if len(f) > maxFaults {
		texts = append(texts, fmt.Sprintf("and %d more", len(f)-maxFaults))
	}
	return "invalid pod: " + strings.Join(texts, ", ")
}

func clip(text string) string {
	if len(text) > maxFaultText {
		text = text[:maxFaultText] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD") // protobuf accepts other bytes
}

func (f fieldFaults) fields() (paths []string) {
	for _, fault := range f {
		paths = append(paths, fault.Field)
	}
	return paths
}

// unknownFields are the paths of fields that were dropped.
type unknownFields []string

func (u unknownFields) Error() string {
	var texts []string
	for _, path := range u[:min(len(u), maxFaults)] {
		texts = append(texts, clip(path))
	}
	if len(u) > maxFaults {
		texts = append(texts, fmt.Sprintf("and %d more", len(u)-maxFaults))
	}
	return "not known, and dropped: " + strings.Join(texts, ", ") +
		"; a field may be misspelt, or of a later release than the kubelet's or than this program was built for"
}

func (u unknownFields) fields() []string { return u }

// typeFault is a field with a value of another type.
type typeFault struct {
	field string // empty for the document itself; without indexes if the JSON decoder names it
	why   string
}

func (f *typeFault) Error() string {
	if f.field == "" {
		return f.why
	}
	return f.field + ": " + f.why
}

func (f *typeFault) fields() []string {
	if f.field == "" {
		return nil
	}
	return []string{f.field}
}

// syntaxError is a document that does not parse at a line, counted from the start of the document.
type syntaxError struct {
	line int // 0 when the parser does not tell
	why  string
}

func (e *syntaxError) Error() string { return e.why }

var (
	yamlLine  = regexp.MustCompile(`\bline (\d+): `)
	yamlSign  = regexp.MustCompile(`'[[:punct:]]'`)
	jsonField = regexp.MustCompile(`^json: cannot unmarshal (\w+)(?: \S+)? into Go ` +
		`(?:struct field \w*\.([\w.]+)|value) of type (\S+) *(?:\{.*)?$`)
)

// yamlReasons replace reasons of the parser that quote the text, or name no fault to look for. The
// first match counts.
var yamlReasons = []struct{ parsers, ours string }{
	{"did not find expected ',' or '}'", "a brace is not closed, or a comma is missing" + halfWritten},
	{"did not find expected ',' or ']'", "a bracket is not closed, or a comma is missing" + halfWritten},
	{"could not find expected ':'", "a key has no colon" + halfWritten},
	{"found unexpected end of stream", "a quote is not closed" + halfWritten},
	{"cannot decode", "a value does not fit its tag"},
	{"unknown anchor", "an alias has no anchor"},
	{"value contains itself", "an anchor contains itself"},
	{"invalid map key", "a key is a list or a mapping"},
}

const halfWritten = ": is the manifest half-written?"

// yamlError keeps the line and the reason of a parser's complaint, and drops a reason that quotes
// the text. A quoted sign is the parser's own.
func yamlError(err error) error {
	why, line := strings.TrimPrefix(err.Error(), "yaml: "), yamlErrorLine(err)
	why = strings.TrimPrefix(why, fmt.Sprintf("line %d: ", line))
	for _, reason := range yamlReasons {
		if strings.Contains(why, reason.parsers) {
			return &syntaxError{line: line, why: "not valid YAML: " + reason.ours}
		}
	}
	if strings.ContainsAny(yamlSign.ReplaceAllString(why, ""), "`'\"\n") {
		why = "a value cannot be read; the reason is left out, because it quotes the manifest"
	}
	return &syntaxError{line: line, why: "not valid YAML: " + why}
}

// yamlErrorLine is the line that a parser names, or 0.
func yamlErrorLine(err error) (line int) {
	if err == nil {
		return 0
	}
	if place := yamlLine.FindStringSubmatch(err.Error()); place != nil {
		line, _ = strconv.Atoi(place[1])
	}
	return line
}

// jsonKinds are the decoder's names for the values in a document.
var jsonKinds = map[string]string{
	"number": "a number", "string": "a string", "bool": "a boolean", "array": "a list", "object": "an object",
}

// inJSON is the JSON that a manifest must have for a value of a Go type. The author of a manifest
// knows the names of the API's own types, but none of Go's.
func inJSON(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "map["), goType == "struct":
		return "an object"
	case goType == "string":
		return "a string"
	case goType == "bool":
		return "a boolean"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"), strings.HasPrefix(goType, "float"):
		return "a number"
	}
	return "a value of type " + goType
}

// jsonError names the field of a document that has the wrong type, and not its value.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := data[:min(int(syntax.Offset), len(data))]
		return &syntaxError{line: 1 + strings.Count(string(before), "\n"), why: "not valid JSON"}
	}
	if parts := jsonField.FindStringSubmatch(err.Error()); parts != nil {
		return &typeFault{field: parts[2], why: cmp.Or(jsonKinds[parts[1]], "a "+parts[1]) + " where " + inJSON(parts[3]) + " is expected"}
	}
	var timeError *time.ParseError
	switch {
	case errors.Is(err, resource.ErrFormatWrong), errors.Is(err, resource.ErrNumeric), errors.Is(err, resource.ErrSuffix):
		return errors.New("a quantity is not one: a number and a unit, as in 100m or 1Gi")
	case errors.As(err, &timeError):
		return errors.New("a time is not one in RFC 3339, as in 2006-01-02T15:04:05Z")
	}
	return errors.New("a field has a value that its type does not have")
}
