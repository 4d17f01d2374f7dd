package listwatch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/causes"
)

// explain returns a request's error without bodies, queries and user info. If the cause alone does
// not tell what to do, it adds advice. errors.Is and errors.As still find the cause.
func explain(err error) error {
	if sent, ok := err.(*url.Error); ok {
		if sent.Err.Error() == redirects {
			return errRedirects // the URL is that of the last one
		}
		return &url.Error{Op: sent.Op, URL: shortURL(sent.URL), Err: explainCause(sent.Err)}
	}
	return withoutBody(err)
}

// redirects is how net/http says that it follows no more of them.
const redirects = "stopped after 10 redirects"

// shortURL omits the user, and the query, which is long and may hold secrets.
func shortURL(full string) string {
	u, err := url.Parse(full)
	if err != nil {
		return "an address that is no URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// explainCause explains why no answer came.
func explainCause(err error) error {
	message := err.Error()
	switch {
	case strings.Contains(message, alertAnswer):
		return errWantsHTTPS
	case quotes(message):
		return errNotHTTP
	case strings.Contains(message, "unsupported protocol scheme"):
		return fmt.Errorf("%w: begin the address with https:// or http://", err)
	}
	if own := credentialsError(message); own != nil {
		return own
	}
	if hint := tlsHint(err); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// schemeError is an answer in TLS to a request in plain HTTP, the opposite of
// [http.ErrSchemeMismatch]: both are found by that name.
type schemeError struct{}

func (schemeError) Error() string {
	return "the server speaks HTTPS and was asked in plain HTTP: begin the address with https://"
}

func (schemeError) Is(target error) bool { return target == http.ErrSchemeMismatch }

var errWantsHTTPS error = schemeError{}

// alertAnswer is how net/http quotes the start of a TLS alert that answers a plain request.
const alertAnswer = `malformed HTTP response "\x15\x03`

// plainToHTTPS are the words in which Go's server, nginx and Apache refuse plain HTTP on a port of
// HTTPS.
var plainToHTTPS = []string{
	"Client sent an HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port",
	"speaking plain HTTP to an SSL-enabled server port",
}

// wantsHTTPS reports whether a 400 without a Status refuses plain HTTP.
func wantsHTTPS(status metav1.Status) bool {
	if status.Code != http.StatusBadRequest || status.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return slices.ContainsFunc(plainToHTTPS, func(words string) bool { return strings.Contains(cause.Message, words) })
	})
}

// tlsHint names the settings to check if the two sides did not agree on a connection.
func tlsHint(err error) string {
	var authority x509.UnknownAuthorityError
	var certificate x509.CertificateInvalidError
	var name x509.HostnameError
	var alert *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "begin the address with http://, or correct its port"
	case errors.As(err, &authority):
		return "give the authority that signed it as rest.Config.TLSClientConfig.CAFile or CAData; if the file was replaced, " +
			"client-go reads it within 5 minutes, and before 0.36 never: restart the program then"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "renew the server's certificate, or correct the clock of this machine"
	case errors.As(err, &name):
		return "use a name of the certificate in the address, or set rest.Config.TLSClientConfig.ServerName"
	case errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate"):
		return "the server refused the client's certificate, or asks for one: check CertFile and KeyFile of rest.Config.TLSClientConfig"
	case errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "internal error"):
		return "the server could not serve TLS: look at its log"
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "the server refused the TLS handshake: compare the TLS versions and ciphers of both sides"
	case errors.As(err, &record):
		return "the port does not speak TLS: is this the address of a Kubernetes API server?"
	}
	return ""
}

// credentialsError recognises the errors of credential plugins, token sources and malformed tokens
// by their texts, since they have no types. It is nil for any other error.
func credentialsError(message string) error {
	const plugin, output, unreadable = "getting credentials: ", "decoding stdout", "failed to read token file"
	// Advice or a token server's answer follows the first line.
	first, _, _ := strings.Cut(message, "\n")
	cause, isPlugin := strings.CutPrefix(first, plugin)
	hint := ""
	switch {
	case isPlugin && strings.HasPrefix(cause, output):
		cause, hint = "exec: the output of the credential plugin cannot be decoded", "run the plugin by hand"
	case isPlugin && strings.HasSuffix(cause, " not found"):
		hint = "install the credential plugin, or correct its command in the kubeconfig"
	case isPlugin:
		hint = "run the credential plugin by hand; it says on standard error what it lacks"
	case strings.HasPrefix(first, unreadable), strings.HasPrefix(first, "read empty token from file"):
		hint = "check the file and who may read it"
	case strings.HasPrefix(first, "oauth2: "), strings.HasPrefix(first, "failed to refresh token: "),
		strings.HasPrefix(first, "No valid id-token"):
		hint = "log in again, or look at the server that issues the tokens"
	case strings.Contains(first, `invalid header field value for "Authorization"`):
		cause, hint = "the token has a character that no header may have", "look for line breaks in it"
	default:
		return nil
	}
	cut(&cause, maxMessage)
	return &causes.Credentials{Err: fmt.Errorf("%s: %s", cause, hint)}
}

// notFound adds the requested resource to a 404, and the things to check.
func (c *clientSource[T]) notFound(err error) error {
	version := c.client.APIVersion()
	// An API server also answers so if it does not know the group.
	if apierrors.IsUnexpectedServerError(err) {
		return fmt.Errorf("%w: nothing serves %s there: check that its CRD is installed, and look for a wrong path or a proxy in the address",
			err, version)
	}
	scope := ""
	if c.options.namespace != "" {
		scope = ", and whether it has namespaces"
	}
	return fmt.Errorf("%w: no resource %q in %s: compare plural name, group and version with kubectl api-resources%s",
		err, c.resource, version, scope)
}

// addressError refuses an address that is no URL, without quoting it: it may contain a password.
// client-go accepts a host and a port as an address.
func addressError(address string) error {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Host != "" {
		return nil
	}
	switch u, err := url.Parse("https://" + address); {
	case strings.Contains(address, "://"), err != nil:
		return errors.New("the address (rest.Config.Host) is no URL: write https://, host and port")
	case strings.Trim(u.Path, "/") != "" || u.Host == "" && address != "":
		return errors.New("the address (rest.Config.Host) has a path and no scheme: begin it with https:// or http://")
	}
	return nil
}

// answered names the request in the error of an answer whose sender may not be an API server.
func answered(err error, address *url.URL) error {
	if errors.Is(err, errWantsHTTPS) || errors.As(err, new(*causes.WrongAnswer)) || apierrors.IsUnexpectedServerError(err) {
		return fmt.Errorf("%w (GET %s)", err, shortURL(address.String()))
	}
	return err
}
