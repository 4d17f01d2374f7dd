package static

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/internal/access"
)

// Option configures a reader. An option that does not apply to files, or to URLs, is ignored there.
type Option func(*settings)

// settings hides an internal type from the documentation.
type settings = access.Settings

// WithInterval sets how often all files are read again, whatever inotify reports, and how long
// after an answer a URL is read again. Default 20 s.
func WithInterval(d time.Duration) Option { return func(s *settings) { s.Every = d } }

// WithGrace sets how long objects outlive a path that has gone away: a folder, or a file together
// with its folder. Zero drops them at once. Default one minute. It does not apply to URLs: their
// objects stay until an accepted answer drops them.
func WithGrace(d time.Duration) Option { return func(s *settings) { s.Grace = d } }

// WithLogger logs changes of health at level 0, and each look at level 2. Problems that a person
// must mend are errors. Default: the logger in Run's context, else klog's. A source of the package
// sources uses the logger of its Sources.
func WithLogger(log logr.Logger) Option { return func(s *settings) { s.Log = &log } }

// WithTimeout limits one request, its body included. Default 10 s. This option and the options
// below do not apply to files.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.Timeout = d } }

// WithHeader adds a header to each request. A name may be given more than once. Values never appear
// in a message.
func WithHeader(name, value string) Option {
	return func(s *settings) { s.Header.Add(name, value) }
}

// WithTokenFile sends the bearer token in this file with each request. The file is read before each
// request, so a renewed token is used at once. If it cannot be read, no request is made. The token
// never appears in a message.
func WithTokenFile(path string) Option { return func(s *settings) { s.TokenFile = path } }

// WithCA trusts servers by the certificates in this PEM file in place of the system's. The file is
// read before each request, so a changed authority counts at once. If it cannot be used, no request
// is made.
func WithCA(path string) Option { return func(s *settings) { s.CAFile = path } }

// WithClientCertificate presents the certificate and key in these PEM files to servers that ask for
// one. Both are read before each request, so renewed files are used at once. If they cannot be
// used, or do not belong together, no request is made. The key never appears in a message.
func WithClientCertificate(certificate, key string) Option {
	return func(s *settings) { s.CertificateFile, s.KeyFile = certificate, key }
}

// WithUnixSocket connects to a unix-domain socket, whatever the host of the URL. The host is still
// sent to the server, as in http://localhost/pods. No proxy is used. An https URL speaks TLS over
// the socket.
func WithUnixSocket(path string) Option { return func(s *settings) { s.Socket = path } }

// WithTransport makes requests with this transport, if the options above do not suffice. It
// excludes WithCA, WithClientCertificate and WithUnixSocket. Default: http.DefaultTransport.
func WithTransport(transport http.RoundTripper) Option {
	return func(s *settings) { s.Transport = transport }
}

func apply(list []Option) settings {
	s := access.Default()
	for _, option := range list {
		option(&s)
	}
	return s
}
