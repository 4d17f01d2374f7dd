package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tributary-go/tributary/sources/internal/limit"
)

const maxRedirects = 10

// ErrNoURL refuses an empty address.
var ErrNoURL = errors.New("the manifest URL is empty: give one that begins with http:// or https://")

// Client makes the requests to one URL. It is not safe for concurrent use.
type Client struct {
	url      *url.URL
	settings Settings
	http     *http.Client
	own      connection
}

// NewClient refuses an address that no request can be made to. Its error never repeats the address,
// which may hold a password.
func NewClient(address string, settings Settings) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		err = ErrNoURL
	case !hasScheme(address):
		err = errors.New("the manifest URL does not begin with http:// or https://: write that before the host")
	case err != nil:
		err = errors.New("the manifest URL cannot be parsed")
	case u.Host == "":
		err = errors.New("the manifest URL has no host")
	default:
		err = settings.Validate()
	}
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: settings.Transport, CheckRedirect: stayOnHost}
	return &Client{url: u, settings: settings, http: client}, nil
}

// hasScheme looks at the text, because a parser does not help: it takes the host of
// localhost:8080/pods for a scheme, and refuses 127.0.0.1:8080/pods for its colon.
func hasScheme(address string) bool {
	scheme, _, ok := strings.Cut(address, ":")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// FollowAnywhere follows up to ten redirects, to any server.
func (c *Client) FollowAnywhere() { c.http.CheckRedirect = nil }

// Shown is the URL without its possible secrets: user, password, query and fragment.
func (c *Client) Shown() string {
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// Get makes one request with the headers of the settings and of more. The caller closes the body.
func (c *Client) Get(ctx context.Context, more http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url.String(), nil)
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	request.Header = c.settings.Header.Clone()
	request.Host = c.settings.Header.Get("Host")
	for name, values := range more {
		request.Header[name] = values
	}
	if c.settings.TokenFile != "" {
		token, err := readToken(c.settings.TokenFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if c.settings.connects() {
		if c.http.Transport, err = c.own.current(c.settings); err != nil {
			return nil, err
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.cause(err)
	}
	return response, nil
}

// maxHint bounds how much of a refusal is searched for its reason.
const maxHint = 4 << 10

// Refusal is the error of a refused request. It names the status, and says so if the server wants
// HTTPS. It never repeats the body.
func (c *Client) Refusal(status int, body io.Reader) error {
	err := Mark(classOfStatus(status), fmt.Errorf("the server answered %d %s", status, http.StatusText(status)))
	if status != http.StatusBadRequest || c.url.Scheme != "http" {
		return err
	}
	said, _ := io.ReadAll(io.LimitReader(body, maxHint))
	for _, reason := range []string{ // of Go, nginx and Apache
		"HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled",
	} {
		if bytes.Contains(said, []byte(reason)) {
			return fmt.Errorf("%w: %w", err, errWantsHTTPS)
		}
	}
	return err
}

// Body reads the body of an answer up to the limit.
func (c *Client) Body(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, limit.Size))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body was not read: %w", c.cause(err))
	case len(body) >= limit.Size:
		return nil, Mark("refused", fmt.Errorf("a body of %d MiB or more is not read", limit.Size>>20))
	}
	return body, nil
}

// Close closes the connections of this client alone.
func (c *Client) Close() { c.own.close() }

// stayOnHost refuses redirects to another server, which must get neither the headers nor our trust.
func stayOnHost(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return fmt.Errorf("%w: to %s://%s, which is another server", errRedirect, to.URL.Scheme, to.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: %d times", errRedirect, maxRedirects)
	}
	return nil
}

func readToken(path string) (string, error) {
	data, err := ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token file %s does not hold one word", path)
	}
	return token, nil
}
