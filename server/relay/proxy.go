package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// proxy passes requests on under the credentials that they bring.
type proxy struct {
	httputil.ReverseProxy
	name     string          // of the upstream, for people
	over     context.Context // ends the streams
	plain    http.RoundTripper
	upgrades http.RoundTripper // speaks HTTP/1.1 alone: HTTP/2 has no such upgrades
	reading  http.RoundTripper // under the relay's credential
	passed   atomic.Uint64     // requests
	known    *documents
	own      http.Handler // documents for clients that have no credential to pass on
}

func newProxy(over context.Context, config *rest.Config, name string, access func(http.Handler) http.Handler) (*proxy, error) {
	// The way to the server and its certificate authority are left: no token, no client
	// certificate, no plugin, no impersonation.
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.UserAgent = ""
	anonymous.Timeout = 0
	anonymous.DisableCompression = true // clients say themselves if they accept it
	plain, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	old := rest.CopyConfig(anonymous)
	old.NextProtos = []string{"http/1.1"}
	upgrades, err := rest.TransportFor(old)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	base.User = nil
	trusted := rest.CopyConfig(config)
	trusted.Timeout, trusted.DisableCompression = 0, true
	reading, err := rest.TransportFor(trusted)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	p := &proxy{name: name, over: over, plain: plain, upgrades: upgrades, reading: reading, known: newDocuments(access)}
	p.ReverseProxy = httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { rewrite(r, base) },
		Transport:      p,
		FlushInterval:  -1, // each piece at once
		ModifyResponse: p.arrive,
		ErrorHandler:   p.fail,
		ErrorLog:       log.New(io.Discard, "", 0), // its client sees an answer that breaks off
	}
	own := p.ReverseProxy
	own.Rewrite = func(r *httputil.ProxyRequest) { ask(r, base) }
	own.Transport = reading
	p.own = access(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrivedKey{}, r)))
	}))
	return p, nil
}

// ask asks for a document in the relay's name. Of the client's request it has the path, the hash of
// an OpenAPI document, and the forms that the client accepts.
func ask(r *httputil.ProxyRequest, base *url.URL) {
	r.Out.URL.RawQuery = ""
	if hash := r.In.URL.Query().Get("hash"); hash != "" {
		r.Out.URL.RawQuery = url.Values{"hash": {hash}}.Encode()
	}
	r.SetURL(base)
	for name := range r.Out.Header {
		switch name {
		case "Accept", "Accept-Encoding", "If-None-Match":
		default:
			delete(r.Out.Header, name)
		}
	}
}

// rewrite sends a request to the upstream, as the client wrote it.
func rewrite(r *httputil.ProxyRequest, base *url.URL) {
	r.SetURL(base)
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
}

// RoundTrip picks the transport of a request.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if in := arrived(r); in.ProtoMajor == 2 && r.Body != nil {
		r = r.WithContext(r.Context())
		r.Body = upload{r.Body, in.Body}
	}
	if r.Header.Get("Upgrade") != "" {
		return p.upgrades.RoundTrip(r)
	}
	return p.plain.RoundTrip(r)
}

// upload is the body of a client over HTTP/2. Such a client keeps the rest to itself once it has
// been refused, and ReverseProxy hides from the transport how to end the wait for it.
type upload struct {
	io.Reader
	io.Closer
}

func (p *proxy) close() {
	utilnet.CloseIdleConnectionsFor(p.plain)
	utilnet.CloseIdleConnectionsFor(p.upgrades)
	utilnet.CloseIdleConnectionsFor(p.reading)
}

// takes reports whether a request can be passed on: the certificate of a client proves nothing to
// the upstream.
func (p *proxy) takes(r *http.Request) bool {
	return r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || r.Header.Get("Authorization") != ""
}

// ServeHTTP passes a request on.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := variantOf(r); ok && !p.takes(r) {
		p.own.ServeHTTP(w, r)
		return
	}
	if !p.takes(r) {
		apiserver.RespondError(w, apierror.Refused(http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("the relay cannot pass this request on to %s: your client certificate proves your name to the relay alone. "+
				"Use a bearer token, or the upstream's own address", p.name)))
		return
	}
	p.passed.Add(1)
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), arrivedKey{}, r))
	defer cancel()
	if isStream(r) {
		defer context.AfterFunc(p.over, cancel)()
	}
	p.ReverseProxy.ServeHTTP(w, r.WithContext(ctx))
}

// arrive sees each answer before the client does.
func (p *proxy) arrive(response *http.Response) error {
	if in := arrived(response.Request); response.StatusCode == http.StatusOK && isTrue(in.URL.Query(), "watch") {
		response.Body = watching{response.Body, p.over}
	}
	return p.known.keep(response)
}

// watching is the body of a watch. It has a proper end when the relay shuts down: over HTTP/2, a
// reflector of client-go lists again after any other.
type watching struct {
	io.ReadCloser
	over context.Context
}

func (w watching) Read(p []byte) (n int, err error) {
	if n, err = w.ReadCloser.Read(p); err != nil && w.over.Err() != nil {
		err = io.EOF
	}
	return n, err
}

type arrivedKey struct{}

// arrived is a request as it came, given the one that was sent on.
func arrived(sent *http.Request) *http.Request {
	return sent.Context().Value(arrivedKey{}).(*http.Request)
}

// isStream reports whether an answer has no end of its own: a watch, a log that is followed, or a
// connection that is upgraded.
func isStream(r *http.Request) bool {
	query := r.URL.Query()
	target, _ := apiserver.ParseTarget(r.URL.Path)
	return r.Header.Get("Upgrade") != "" || isTrue(query, "watch") || target.Subresource == "log" && isTrue(query, "follow")
}

func isTrue(query url.Values, name string) bool {
	values, given := query[name]
	return given && (len(values) == 0 || values[0] != "false" && values[0] != "0")
}

// fail answers a request to which the upstream gave no answer.
func (p *proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case p.over.Err() != nil:
		apiserver.RespondError(w, errClosed)
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client has gone
	default:
		p.known.answer(w, arrived(r), p.failure(err))
	}
}

// failure is the Status of a request that the upstream did not answer. Of the cause it has the
// network's words alone.
func (p *proxy) failure(err error) error {
	var network *net.OpError
	text := "the upstream " + p.name + " gave no answer"
	switch {
	case errors.As(err, &network):
		text += ": " + network.Error()
	case strings.Contains(err.Error(), "x509: ") || strings.Contains(err.Error(), "tls: "):
		text += ": TLS failed"
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError(text, 0)
	}
	return apierrors.NewServiceUnavailable(text)
}
