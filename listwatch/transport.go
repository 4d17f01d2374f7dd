package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/sending"
)

// maxErrorBody bounds the body of an answer that is not 2xx. A Status takes some hundred bytes;
// client-go reads such a body to its end, whatever its size.
const maxErrorBody = 64 << 10

// paced returns the client with a transport of our own, which bounds the bodies of error answers
// and keeps the pace of the server. A rest.Interface of another type than client-go's own does not
// show its HTTP client, and stays as it is.
func paced(client rest.Interface) rest.Interface {
	own, ok := client.(*rest.RESTClient)
	if !ok || own == nil {
		return client
	}
	// The copy keeps address, rate limiter and warning handler: no constructor of client-go takes
	// all three. Reflection copies an atomic that counts refused CBOR bodies, of which we send
	// none.
	copied := reflect.New(reflect.TypeOf(own).Elem())
	copied.Elem().Set(reflect.ValueOf(own).Elem())
	out := copied.Interface().(*rest.RESTClient)
	sender := *http.DefaultClient
	if own.Client != nil {
		sender = *own.Client
	}
	sender.Transport = &transport{sender.Transport, serverOf(sender.Transport, own.Get().URL().Host)}
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

// serverOf is the pace of the server at host. Clients share it if they share connections: one
// configuration makes one transport, under layers for the credentials of each client.
func serverOf(outer http.RoundTripper, host string) *pace.Server {
	inner := outer
	if inner == nil {
		inner = http.DefaultTransport
	}
	for {
		layer, ok := inner.(utilnet.RoundTripperWrapper)
		if !ok || layer.WrappedRoundTripper() == nil {
			break
		}
		inner = layer.WrappedRoundTripper()
	}
	if !reflect.ValueOf(inner).Comparable() {
		return &pace.Server{}
	}
	return pace.ServerOf(server{inner, host})
}

// server names a server: the connections to it, and its host.
type server struct {
	transport http.RoundTripper
	host      string
}

type transport struct {
	next http.RoundTripper
	pace *pace.Server
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	done, err := t.pace.Enter(ctx, func() (ended func()) {
		return sending.Begin(ctx, sending.Wait{For: sending.Server, Since: time.Now()})
	})
	if err != nil {
		return nil, err
	}
	response, err := t.WrappedRoundTripper().RoundTrip(request)
	done(outcomeOf(ctx, err))
	if err == nil && response.Body != nil && (response.StatusCode < 200 || response.StatusCode > 299) {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBody), response.Body}
	}
	return response, err
}

// outcomeOf tells a server that is not there from a request that was given up, or could not be sent
// for a reason of TLS or of credentials.
func outcomeOf(ctx context.Context, err error) pace.Outcome {
	var network *net.OpError
	var name *net.DNSError
	var refused syscall.Errno
	switch {
	case err == nil:
		return pace.Answered
	case ctx.Err() != nil:
		return pace.Neither
	case errors.As(err, &network), errors.As(err, &name), errors.As(err, &refused),
		errors.Is(err, io.ErrUnexpectedEOF), utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return pace.Unreached
	}
	return pace.Neither
}

// WrappedRoundTripper returns the transport that sends; apimachinery finds it by this name.
func (t *transport) WrappedRoundTripper() http.RoundTripper {
	if t.next == nil {
		return http.DefaultTransport
	}
	return t.next
}
