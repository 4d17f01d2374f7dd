package static

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/internal/access"
)

// Option says how a reader works. One that does not apply to files, or to URLs, is ignored there.
type Option func(*settings)

// settings hides an internal type from the documentation.
type settings = access.Settings

// WithInterval sets how often files are looked at again, whatever inotify says, and how long after an answer a URL is
// read again. Default 20 s.
func WithInterval(d time.Duration) Option { return func(s *settings) { s.Every = d } }

// WithGrace sets how long the objects of a path that has gone away stay: a folder, or a file with the folder around it. Zero
// drops them at once. Default one minute. It does not apply to URLs, whose objects stay until an answer says otherwise.
func WithGrace(d time.Duration) Option { return func(s *settings) { s.Grace = d } }

// WithLogger logs what changes (something well or not) at level 0, and each look at level 2. Problems that a person must
// mend are errors. Default: the logger in Run's context, else klog's. Sources have their own.
func WithLogger(log logr.Logger) Option { return func(s *settings) { s.Log = &log } }

// WithTimeout sets how long one request may take, its body included. Default 10 s. It does not apply to files, nor do the
// options below.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.Timeout = d } }

// WithHeader adds a header to each request; one name may be given more than once. Values never appear in a message.
func WithHeader(name, value string) Option {
	return func(s *settings) { s.Header.Add(name, value) }
}

// WithTokenFile sends the bearer token that a file holds with each request. The file is read before each one, so that a
// token that was renewed is used at once; while it cannot be read, no request is made. What it holds never appears in a
// message.
func WithTokenFile(path string) Option { return func(s *settings) { s.TokenFile = path } }

// WithCA trusts servers by the certificates in this file, in PEM, in place of the system's. It is read before each request,
// so that an authority that was changed counts at once; while it cannot be used, no request is made.
func WithCA(path string) Option { return func(s *settings) { s.CAFile = path } }

// WithClientCertificate shows servers that ask for one the certificate and key in these files, in PEM. They are read before
// each request, so that what was renewed is used at once; while they cannot be used, or do not belong together, no request
// is made. What the key's file holds never appears in a message.
func WithClientCertificate(certificate, key string) Option {
	return func(s *settings) { s.CertificateFile, s.KeyFile = certificate, key }
}

// WithUnixSocket connects to a unix-domain socket, whatever the host of the URL, which is sent to the server: as in
// http://localhost/pods. No proxy is used. With https, TLS is spoken over the socket.
func WithUnixSocket(path string) Option { return func(s *settings) { s.Socket = path } }

// WithTransport makes the requests with a transport of the caller's, where the options above do not suffice. It excludes
// WithCA, WithClientCertificate and WithUnixSocket. Default: http.DefaultTransport.
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
