package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/ledger"
)

var errTooLarge = fmt.Errorf("the pods have more than %d MiB", maxList>>20)

// connection is a gRPC connection to one socket. It is safe for concurrent use.
type connection struct {
	pods    api.PodsClient
	conn    *grpc.ClientConn
	refused atomic.Pointer[error] // why the socket could not be opened, the last time
}

// connect opens nothing yet: a connection is made for a request, and made again.
func connect(socket string) (*connection, error) {
	c := &connection{}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		c.refused.Store(&err)
		return conn, err
	}
	conn, err := grpc.NewClient("passthrough:///kubelet", grpc.WithContextDialer(dial), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // root alone may open the socket
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: gap},
			MinConnectTimeout: timeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	c.conn, c.pods = conn, api.NewPodsClient(conn)
	return c, nil
}

func (c *connection) close() { _ = c.conn.Close() }

// gateOff advises on a kubelet that has no PodsAPI.
const gateOff = ": is the feature gate PodsAPI of the kubelet on?"

// problem is the error of a request. It has the code of the kubelet's answer, and not its text.
func (r *run) problem(request string, err error) error {
	class, why := r.reason(err)
	return access.Mark(string(class), fmt.Errorf("%s: %s: %s", r.socket, request, why))
}

func (c *connection) reason(err error) (class reflector.Class, why string) {
	switch {
	case errors.Is(err, io.EOF):
		return reflector.Disconnected, "the kubelet has ended it"
	case errors.Is(err, errTooLarge):
		return reflector.Refused, err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return reflector.Silent, fmt.Sprintf("no complete answer within %s", timeout)
	}
	switch code := status.Code(err); code {
	case codes.Unavailable:
		if refused := c.refused.Load(); refused != nil && *refused != nil {
			return classOfDial(*refused)
		}
		return reflector.Disconnected, "the connection was lost"
	case codes.FailedPrecondition:
		return ledger.ClassNotReady, "the kubelet has not read its own sources yet"
	case codes.ResourceExhausted:
		return reflector.Throttled, "the kubelet refuses more for now (ResourceExhausted)"
	case codes.Unimplemented:
		return reflector.NotFound, "the kubelet does not know the request" + gateOff
	case codes.DeadlineExceeded, codes.Canceled:
		return reflector.Silent, fmt.Sprintf("no complete answer within %s", timeout)
	case codes.PermissionDenied, codes.Unauthenticated:
		return reflector.Forbidden, "the kubelet refuses this program (" + code.String() + ")"
	default:
		return reflector.ServerError, "the kubelet failed (" + code.String() + ")"
	}
}

// classOfDial is the reason why the socket cannot be opened. The text of err has nothing but the
// path.
func classOfDial(err error) (class reflector.Class, why string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reflector.NotFound, "there is no socket" + gateOff
	case errors.Is(err, fs.ErrPermission):
		return reflector.Forbidden, "this program may not open the socket: it needs to be root"
	}
	return reflector.Unreachable, "the socket cannot be opened: " + err.Error()
}
