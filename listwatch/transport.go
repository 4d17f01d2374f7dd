package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/client-go/rest"
)

// maxErrorBody bounds the body of an answer that is not 2xx. A Status takes some hundred bytes;
// client-go reads such a body to its end, whatever its size.
const maxErrorBody = 64 << 10

// boundErrors returns the client with a bound on the bodies of its error answers. A rest.Interface
// of another type than client-go's own does not show its HTTP client, and stays as it is.
func boundErrors(client rest.Interface) rest.Interface {
	own, ok := client.(*rest.RESTClient)
	if !ok || own == nil {
		return client
	}
	// The copy keeps address, rate limiter and warning handler: no constructor of client-go takes
	// all three. Reflection copies an atomic that counts refused CBOR bodies, of which we send
	// none.
	bound := reflect.New(reflect.TypeOf(own).Elem())
	bound.Elem().Set(reflect.ValueOf(own).Elem())
	out := bound.Interface().(*rest.RESTClient)
	sender := *http.DefaultClient
	if own.Client != nil {
		sender = *own.Client
	}
	sender.Transport = &errorBound{sender.Transport}
	out.Client = &sender
	return out
}

// timedOut names the client's own limit if that has ended a request whose context goes on. net/http
// gives either a deadline's error or, without a type, the name of the field.
func timedOut(err error, op string, client rest.Interface) error {
	own, ok := client.(*rest.RESTClient)
	if !ok || own.Client == nil || own.Client.Timeout <= 0 ||
		!errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "Client.Timeout") {
		return err
	}
	return fmt.Errorf("the client's own Timeout of %s (rest.Config.Timeout) ended the %s: leave it zero, "+
		"and bound other requests by their contexts: %w", own.Client.Timeout, op, err)
}

type errorBound struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b *errorBound) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.WrappedRoundTripper().RoundTrip(request)
	if err == nil && response.Body != nil && (response.StatusCode < 200 || response.StatusCode > 299) {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBody), response.Body}
	}
	return response, err
}

// WrappedRoundTripper returns the transport that sends; apimachinery finds it by this name.
func (b *errorBound) WrappedRoundTripper() http.RoundTripper {
	if b.next == nil {
		return http.DefaultTransport
	}
	return b.next
}
