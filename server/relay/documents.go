package relay

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tributary-go/tributary/server/apiserver"
)

const (
	// The bounds: of each body, of all bodies, and of their number.
	mostDocument  = 16 << 20
	mostDocuments = 64 << 20
	mostVariants  = 256
)

// documents are the newest answers about the API itself, which every user of the upstream may read:
// discovery, OpenAPI and the version. While the upstream is away they stand in, behind the access
// control.
type documents struct {
	stale http.Handler // answers out of them, behind the access control

	mu    sync.Mutex // guards the next fields
	all   map[variant]*document
	order []variant // the oldest first
	size  int
}

// variant is a document in one form.
type variant struct{ path, accept, encoding string }

type document struct {
	header http.Header
	body   []byte
	at     time.Time
}

func newDocuments(access func(http.Handler) http.Handler) *documents {
	d := &documents{all: map[variant]*document{}}
	d.stale = access(http.HandlerFunc(d.serve))
	return d
}

// published are the paths of the documents, of which every user of the upstream may read all
// (ClusterRole system:discovery). The relay reads them under its own credential, so that the list
// is exact.
var published = regexp.MustCompile(`^/(version/?|(openapi/v3/)?(api(/v[0-9a-z]+)?|apis(/[0-9a-z][-.0-9a-z]*(/v[0-9a-z]+)?)?)/?|openapi/v[23]/?|openapi/v3/version)$`)

// variantOf is the document that a request asks for.
func variantOf(r *http.Request) (v variant, ok bool) {
	path := r.URL.EscapedPath()
	ok = r.Method == http.MethodGet && !impersonates(r.Header) && published.MatchString(path)
	return variant{path, strings.Join(r.Header.Values("Accept"), ","), strings.Join(r.Header.Values("Accept-Encoding"), ",")}, ok
}

// keep keeps a good answer while it passes. An answer of a load balancer without servers is none.
func (d *documents) keep(response *http.Response) error {
	v, ok := variantOf(arrived(response.Request))
	switch {
	case !ok:
		return nil
	case response.StatusCode == http.StatusOK:
		header := response.Header.Clone()
		response.Body = &recorder{ReadCloser: response.Body, done: func(body []byte) {
			d.add(v, &document{header: header, body: body, at: time.Now()})
		}}
	case response.StatusCode >= http.StatusBadGateway && d.find(v) != nil:
		_ = response.Body.Close() // it is not read
		return fmt.Errorf("it answers %d", response.StatusCode)
	}
	return nil
}

// recorder keeps the bytes of a body that is read, up to a bound.
type recorder struct {
	io.ReadCloser
	body bytes.Buffer
	done func(body []byte) // called once, at the end of a whole body
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.body.Len() <= mostDocument {
		r.body.Write(p[:n])
	}
	if err == io.EOF && r.done != nil && r.body.Len() <= mostDocument {
		r.done(slices.Clip(bytes.Clone(r.body.Bytes())))
		r.done = nil
	}
	return n, err
}

func (d *documents) add(v variant, doc *document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(v)
	d.all[v], d.order, d.size = doc, append(d.order, v), d.size+len(doc.body)
	for d.size > mostDocuments || len(d.order) > mostVariants {
		d.removeLocked(d.order[0])
	}
}

func (d *documents) removeLocked(v variant) {
	if old := d.all[v]; old != nil {
		d.size -= len(old.body)
		delete(d.all, v)
		d.order = slices.DeleteFunc(d.order, func(other variant) bool { return other == v })
	}
}

func (d *documents) find(v variant) *document {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[v]
}

// answer answers with the document, or with the error if there is none.
func (d *documents) answer(w http.ResponseWriter, r *http.Request, err error) {
	if v, ok := variantOf(r); ok && d.find(v) != nil {
		d.stale.ServeHTTP(w, r)
		return
	}
	apiserver.RespondError(w, err)
}

// serve answers with the document, and says how old it is.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	v, _ := variantOf(r)
	doc := d.find(v)
	if doc == nil { // dropped for newer ones
		apiserver.RespondError(w, apierrors.NewServiceUnavailable("the upstream does not answer"))
		return
	}
	for name, values := range doc.header {
		w.Header()[name] = values
	}
	text := "the upstream does not answer: this is its answer of " + doc.at.UTC().Format(time.RFC3339)
	if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		w.Header().Add("Warning", warning)
	}
	_, _ = w.Write(doc.body) // the client has gone, and cannot be told
}
