package sources

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// SourceOption says how one file or HTTP source works.
type SourceOption func(*sourceOptions)

type sourceOptions struct {
	every     time.Duration
	grace     time.Duration
	timeout   time.Duration
	ticks     <-chan time.Time // in place of the period, in tests
	header    http.Header
	tokenFile string
	transport http.RoundTripper
	decode    Decode // nil: as static pods
}

const (
	// defaultEvery is the kubelet's fileCheckFrequency and httpCheckFrequency.
	defaultEvery = 20 * time.Second
	// defaultTimeout is the kubelet's.
	defaultTimeout = 10 * time.Second
	// defaultGrace outlasts a mount that is made again.
	defaultGrace = time.Minute
)

// Every sets how often files are looked at again, whatever inotify says, and how often a URL is read. Default 20 s.
func Every(d time.Duration) SourceOption { return func(o *sourceOptions) { o.every = d } }

// Grace sets how long the pods of a path that has gone away stay: a folder, or a file with the folder around it. Zero
// drops them at once. Default one minute. It does not apply to URLs, whose pods stay until an answer says otherwise.
func Grace(d time.Duration) SourceOption { return func(o *sourceOptions) { o.grace = d } }

// WithTimeout sets how long one request of an HTTP source may take, its body included. Default 10 s. It does not apply
// to files.
func WithTimeout(d time.Duration) SourceOption { return func(o *sourceOptions) { o.timeout = d } }

// WithHeader adds a header to each request of an HTTP source; one name may be given more than once. Values never appear
// in a message. It does not apply to files.
func WithHeader(name, value string) SourceOption {
	return func(o *sourceOptions) { o.header.Add(name, value) }
}

// WithTokenFile sends the bearer token that a file holds with each request of an HTTP source. The file is read before each
// one, so that a token that was renewed is used at once; while it cannot be read, no request is made. What it holds never
// appears in a message. It does not apply to files.
func WithTokenFile(path string) SourceOption {
	return func(o *sourceOptions) { o.tokenFile = path }
}

// WithTransport makes the requests of an HTTP source with a transport of the caller's: a CA of its own, a client
// certificate, a unix socket. Default: http.DefaultTransport. It does not apply to files.
func WithTransport(transport http.RoundTripper) SourceOption {
	return func(o *sourceOptions) { o.transport = transport }
}

// Decode turns the bytes of a file, or of an answer, into pods. path names what is read, for errors. An error stands for a
// part that gave no pod, and costs only that: its pods stay as they were last good. Errors must not repeat the content. It
// is called by one goroutine at a time, and what it returns is the source's.
type Decode func(path string, data []byte) (pods []*corev1.Pod, rejected []error)

// WithDecode reads files or answers that are not manifests of static pods, which is what both sources read by default
// (see the package manifest). It has no effect under [LikeKubelet].
func WithDecode(decode Decode) SourceOption {
	return func(o *sourceOptions) { o.decode = decode }
}

// FromKubelet says that a URL is a kubelet's own list of pods (/pods): they are taken as they are, with their names, UIDs,
// annotations and status, and nothing is added, defaulted or validated. A kubelet asks for a bearer token ([WithTokenFile])
// and has a certificate of the cluster's CA ([WithTransport]). It has no effect under [LikeKubelet].
func FromKubelet() SourceOption { return WithDecode(decodePodList) }

func applySource(list []SourceOption) sourceOptions {
	o := sourceOptions{
		every: defaultEvery, grace: defaultGrace, timeout: defaultTimeout,
		header: http.Header{}, transport: http.DefaultTransport,
	}
	for _, option := range list {
		option(&o)
	}
	return o
}

func (o sourceOptions) validate() error {
	switch {
	case o.every <= 0:
		return fmt.Errorf("Every(%s): give a positive duration", o.every)
	case o.grace < 0:
		return fmt.Errorf("Grace(%s): give zero or more", o.grace)
	case o.timeout <= 0:
		return fmt.Errorf("WithTimeout(%s): give a positive duration", o.timeout)
	case o.transport == nil:
		return errors.New("WithTransport(nil): leave the option out")
	case o.tokenFile != "" && o.header.Get("Authorization") != "":
		return errors.New("WithTokenFile and an Authorization header: give one of them")
	}
	return nil
}

// checkURL refuses an address that no request can be made to, without repeating it: it may hold a password.
func checkURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the manifest URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the manifest URL has the scheme %q: give http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("the manifest URL has no host")
	}
	return u, nil
}

// shown is a URL without what may be secret in it: user, password, query and fragment.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// stale is when a source that looks every period is overdue for certain: it missed two looks, each of which may take long.
func (o sourceOptions) stale() time.Duration { return 3*o.every + o.timeout }

// period ticks every period, until stop.
func (o sourceOptions) period() (ticks <-chan time.Time, stop func()) {
	if o.ticks != nil {
		return o.ticks, func() {}
	}
	ticker := time.NewTicker(o.every)
	return ticker.C, ticker.Stop
}
