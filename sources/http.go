package sources

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tributary-go/tributary/sources/manifest"
)

// HTTP adds the pods declared behind a URL, read every period: a Pod, a PodList or a stream of YAML documents, in JSON,
// YAML or protobuf. Only an answer that was accepted counts: on an error, on a status other than 200, on an empty body or
// one that is no manifest, the pods stay as they are. A PodList without items is how to say that there are none. A proxy
// from the environment is used, redirects are followed only within the same scheme and host.
func HTTP(address string, options ...SourceOption) Option {
	return With(&httpSource{address: address, options: applySource(options)})
}

const (
	httpFirstBackoff = time.Second
	maxRedirects     = 10
)

type httpSource struct {
	address string
	options sourceOptions
	keeper  keeper

	// Of the goroutine of Run.
	url      *url.URL
	client   *http.Client
	decode   Decode
	entry    entry
	problems []error // of the last body that was taken
	accepted answer  // the last one that was taken without a problem, without its body
	failures int
}

func (h *httpSource) Name() string { return HTTPSource }

func (h *httpSource) Report() Report { return h.keeper.read() }

func (h *httpSource) Run(ctx context.Context, sink *Sink) error {
	address, err := checkURL(h.address)
	if err == nil {
		err = h.options.validate()
	}
	if err != nil {
		return err
	}
	h.url = address
	h.keeper.staleAfter(h.options.stale())
	h.entry.path = shown(address)
	h.client = &http.Client{Transport: h.options.transport, CheckRedirect: stayOnHost}
	if sink.likeKubelet {
		return newKubeletHTTP(h, sink).run(ctx)
	}
	h.decode = decoder(h.options, sink.Node(), HTTPSource)
	h.keeper.mode(fmt.Sprintf("poll every %s", h.options.every))
	for {
		h.poll(ctx, sink)
		timer := time.NewTimer(h.next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// stayOnHost refuses redirects that would carry the headers, and the trust in what is read, to another place.
func stayOnHost(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("%w: to %s://%s, which is another server", errRedirect, to.URL.Scheme, to.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: %d times", errRedirect, maxRedirects)
	}
	return nil
}

// next is how long to wait: the period, or after a failure a moment that doubles up to the period, with jitter.
func (h *httpSource) next() time.Duration {
	if h.failures == 0 {
		return h.options.every
	}
	delay := httpFirstBackoff << min(h.failures-1, 16)
	delay = min(delay, h.options.every)
	return delay/2 + rand.N(delay/2+1)
}

// poll reads the URL once.
func (h *httpSource) poll(ctx context.Context, sink *Sink) {
	log := sink.Log().WithValues("url", h.entry.path)
	got, err := h.fetch(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		h.failures++
		err = fmt.Errorf("%s: %w", h.entry.path, err)
		h.keeper.round(log, append([]error{err}, h.problems...), false)
		return
	}
	h.failures = 0
	if got.body != nil {
		h.take(sink, got)
	}
	h.keeper.round(log, h.problems, true)
	log.V(2).Info("Read manifests", "bytes", len(got.body), "changed", got.body != nil, "pods", len(h.entry.pods))
}

// take brings the pods up to date with a new body. One in which nothing is good changes nothing, and does not count as
// the source's first state.
func (h *httpSource) take(sink *Sink, got answer) {
	pods, rejected := h.decode(h.entry.path, got.body)
	h.entry.take(pods, rejected)
	var all Pods
	all, h.problems = table([]*entry{&h.entry})
	h.accepted = answer{}
	if len(rejected) == 0 {
		h.accepted = got
		h.accepted.body = nil
	}
	if len(pods) > 0 || len(rejected) == 0 {
		sink.setInOrder(all, h.entry.pods)
	}
}

// answer is a 200: its body, and what tells it from another one.
type answer struct {
	body           []byte // nil when it is what was accepted before
	sum            [sha256.Size]byte
	etag, modified string
}

func (h *httpSource) fetch(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, h.options.timeout)
	defer cancel()
	request, err := h.request(ctx)
	if err != nil {
		return answer{}, err
	}
	if h.accepted.etag != "" {
		request.Header.Set("If-None-Match", h.accepted.etag)
	}
	if h.accepted.modified != "" {
		request.Header.Set("If-Modified-Since", h.accepted.modified)
	}
	response, err := h.client.Do(request)
	if err != nil {
		return answer{}, h.cause(err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return h.read(response)
	case http.StatusNotModified:
		if h.accepted.etag+h.accepted.modified != "" {
			return answer{}, nil
		}
	}
	return answer{}, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

func (h *httpSource) request(ctx context.Context) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url.String(), nil)
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	request.Header = h.options.header.Clone()
	request.Host = h.options.header.Get("Host")
	if h.options.tokenFile != "" {
		token, err := readToken(h.options.tokenFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, nil
}

func readToken(path string) (string, error) {
	data, err := readBounded(path)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token file %s does not hold one word", path)
	}
	return token, nil
}

func (h *httpSource) read(response *http.Response) (answer, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, manifest.MaxSize))
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("the body was not read: %w", h.cause(err))
	case len(body) >= manifest.MaxSize:
		return answer{}, fmt.Errorf("a body of %d MiB or more is not read", manifest.MaxSize>>20)
	case len(body) == 0:
		return answer{}, errors.New("the body is empty: a PodList without items says that there are no pods")
	}
	got := answer{
		body: body, sum: sha256.Sum256(body),
		etag: response.Header.Get("ETag"), modified: response.Header.Get("Last-Modified"),
	}
	if got.sum == h.accepted.sum {
		h.accepted.etag, h.accepted.modified = got.etag, got.modified
		got.body = nil
	}
	return got, nil
}
