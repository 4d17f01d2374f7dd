package reflector

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
)

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, OK},
		{stream.ErrDeadline, OK},
		{stream.ErrSilent, Silent},
		{stream.ErrIncomplete, Incomplete},
		{errDoubted, OK},
		{errUnproven, OK},
		{historyError("", ""), History},
		{driftError(io.EOF), Drift},
		{&fault{class: Shrunk}, Shrunk},
		{errNoVersion, WentBack},
		{stream.ErrWentBack, WentBack},
		{apierrors.NewResourceExpired("old"), Expired},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, Expired},
		{status(410), Expired},
		{tooLarge, TooLarge},
		{apierrors.NewTooManyRequests("later", 3), Throttled},
		{apierrors.NewUnauthorized("who"), Unauthorized},
		{apierrors.NewForbidden(pods, "", nil), Forbidden},
		{apierrors.NewNotFound(pods, ""), NotFound},
		{apierrors.NewBadRequest("what"), Refused},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil), Refused},
		{apierrors.NewMethodNotSupported(pods, "watch"), Refused},
		{status(406), Refused},
		{apierrors.NewInternalError(errors.New("etcd")), ServerError},
		{apierrors.NewServiceUnavailable("starting"), ServerError},
		{apierrors.NewTimeoutError("slow", 1), ServerError},
		{&url.Error{Op: "Get", Err: dial}, Unreachable},
		{&net.DNSError{Name: "api"}, Unreachable},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Disconnected},
		{io.ErrUnexpectedEOF, Disconnected},
		{&url.Error{Op: "Get", Err: io.EOF}, Unreachable},
		{&url.Error{Op: "Get", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}, Unreachable},
		{&url.Error{Op: "Get", Err: os.ErrDeadlineExceeded}, Disconnected},
		{os.ErrDeadlineExceeded, Disconnected},
		{errors.New("http2: client connection lost"), Disconnected},
		{&listwatch.DecodeError{Op: "watch", Err: errors.New("not a pod")}, Undecodable},
		{storeError(io.ErrUnexpectedEOF), StoreError},
		{&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}}, TLS},
		{&url.Error{Op: "Get", Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, TLS},
		{&url.Error{Op: "Get", Err: http.ErrSchemeMismatch}, TLS},
		{&url.Error{Op: "Get", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}}, TLS},
		{&url.Error{Op: "Get", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}}, Unreachable},
		// In a stream.
		{&net.OpError{Op: "remote error", Err: errors.New("tls: user canceled")}, Disconnected},
		{&net.OpError{Op: "local error", Err: errors.New("tls: bad record MAC")}, Disconnected},
		{&url.Error{Op: "Get", Err: &causes.Credentials{Err: errors.New("no plugin")}}, Credentials},
		{&url.Error{Op: "Get", Err: &causes.WrongAnswer{Err: errors.New("a page")}}, WrongAnswer},
		{apierrors.NewGenericServerResponse(302, "get", schema.GroupResource{}, "", "", 0, true), WrongAnswer},
		{http2.StreamError{StreamID: 7, Code: http2.ErrCodeInternal}, Disconnected},
		{&url.Error{Op: "Get", Err: http2.StreamError{StreamID: 7, Code: http2.ErrCodeInternal}}, Disconnected},
		{&url.Error{Op: "Get", Err: http2.ConnectionError(http2.ErrCodeProtocol)}, Disconnected},
		{errors.New("something else"), Unknown},
	} {
		require.Equal(t, c.want, Classify(c.err), "%v", c.err)
		if c.err != nil {
			require.Equal(t, c.want, Classify(fmt.Errorf("watch pods: %w", c.err)), "wrapped: %v", c.err)
		}
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	longest := func(class Class, n int) (all []time.Duration) {
		b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
		for range n {
			all = append(all, b.Next(answerOf(class), 0))
		}
		return all
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms, 30000 * ms}, longest(ServerError, 8))
	require.Equal(t, []time.Duration{800 * ms, 1600 * ms, 2000 * ms, 2000 * ms}, longest(Unreachable, 4))
}

// Who grants a right sees the copy within 5 s, whenever that is; nothing is asked more often than
// that needs, but of a server that was away and may not have read its roles yet.
func TestBackoffOfRefusedRights(t *testing.T) {
	for _, random := range []float64{0, 0.5, 0.999} {
		b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return random }}
		for _, class := range []Class{Forbidden, NotFound} {
			for range 100 {
				delay := b.Next(answerOf(class), 0)
				require.GreaterOrEqual(t, delay, 4*time.Second, "at most 8 attempts in 30 s")
				require.LessOrEqual(t, delay, 4750*time.Millisecond, "and the time of a request")
			}
		}
		b.Next(answerOf(Unreachable), 0)
		for range pace.RefusalPatience {
			require.LessOrEqual(t, b.Next(answerOf(Forbidden), 0), pace.AbsentLimit)
		}
		require.GreaterOrEqual(t, b.Next(answerOf(Forbidden), 0), 4*time.Second)
	}
}

// 500 clients whose connections are cut together are back within 100 ms, and not all at once.
func TestBackoffResumesAtOnce(t *testing.T) {
	slots := map[time.Duration]int{}
	for i := range 500 {
		b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return float64(i) / 500 }}
		delay := b.Resume()
		require.Positive(t, delay)
		require.LessOrEqual(t, delay, 50*time.Millisecond, "as long again is left to connect")
		slots[delay.Truncate(time.Millisecond)]++
		require.Zero(t, b.Resume(), "a second time without life in between is a failure like any other")
		require.LessOrEqual(t, b.Next(answerOf(Disconnected), 0), 1600*time.Millisecond)
	}
	require.LessOrEqual(t, slices.Max(slices.Collect(maps.Values(slots))), 11)
}

func TestBackoffBoundsWhatTheServerAsksFor(t *testing.T) {
	for _, seconds := range []int{301, 3600, 1e9, math.MaxInt} {
		for _, err := range []error{apierrors.NewTooManyRequests("later", seconds), apierrors.NewServerTimeout(schema.GroupResource{}, "list", seconds)} {
			b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
			told := pace.RetryAfter(err)
			if int(int32(seconds)) == seconds {
				require.Equal(t, time.Duration(seconds)*time.Second, told)
			}
			for range 10 {
				require.LessOrEqual(t, b.Next(answerOf(Throttled), told), pace.ToldLimit+30*time.Second)
			}
		}
	}
}

func TestBackoffForgetsAnOutageOnceTheServerAnswers(t *testing.T) {
	b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
	b.Next(answerOf(Disconnected), 0)
	for range 100 {
		b.Next(answerOf(Unreachable), 0)
	}
	require.Equal(t, 1600*time.Millisecond, b.Next(answerOf(ServerError), 0), "the second error of a server that was there")
	require.Equal(t, 800*time.Millisecond, b.Next(answerOf(Forbidden), 0), "the first refusal of a server that was away")
	for range 100 {
		b.Next(answerOf(NotFound), 0)
	}
	require.Equal(t, 3200*time.Millisecond, b.Next(answerOf(Disconnected), 0), "the third of a server that does not refuse")
}

func TestBackoffForgetsOnceThereIsLife(t *testing.T) {
	for class, want := range map[Class]time.Duration{Unreachable: 2000, ServerError: 3200} {
		b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
		for flaps, want := range []time.Duration{800, 1600, want} {
			b.Alive(flaps)
			require.Equal(t, want*time.Millisecond, b.Next(answerOf(class), 0), "%s after %d lists in a row that no watch followed", class, flaps)
		}
		b.Alive(0)
		require.Equal(t, 800*time.Millisecond, b.Next(answerOf(class), 0), "%s after a live watch", class)
	}
}

func TestBackoffHasFullJitter(t *testing.T) {
	b := pace.Asker{Initial: time.Second, Limit: 30 * time.Second, Random: func() float64 { return 0 }}
	require.Zero(t, b.Next(answerOf(ServerError), 0))
	b.Random = func() float64 { return 0.25 }
	require.Equal(t, 500*time.Millisecond, b.Next(answerOf(ServerError), 0), "a quarter of the second delay, 2 s")
}

// A server that names a time is believed: the row of failures may not add half a minute to one
// second.
func TestBackoffDoesNotOutweighWhatTheServerSays(t *testing.T) {
	b := pace.Asker{Initial: 800 * time.Millisecond, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
	require.Equal(t, 20800*time.Millisecond, b.Next(answerOf(Throttled), 20*time.Second), "the first: told, and all of the initial delay")
	for range 10 {
		b.Next(answerOf(Throttled), time.Second)
	}
	require.Equal(t, time.Second+pace.ToldSpread, b.Next(answerOf(Throttled), time.Second))
	require.Equal(t, 20*time.Second, b.Next(answerOf(Throttled), 10*time.Second), "as long again, at most")
	require.Equal(t, 90*time.Second, b.Next(answerOf(Throttled), time.Minute), "nor more than the limit")
	for range 5 {
		b.Next(answerOf(Forbidden), 0)
	}
	require.Equal(t, 1800*time.Millisecond, b.Next(answerOf(Throttled), time.Second), "what failed before has no part in it")
	b.Random = func() float64 { return 0 }
	require.Equal(t, time.Second, b.Next(answerOf(Throttled), time.Second), "never less")
}

func TestBackoffSurvivesManyFailures(t *testing.T) {
	b := pace.Asker{Initial: time.Second, Limit: 30 * time.Second, Random: func() float64 { return 1 }}
	for range 10_000 {
		require.LessOrEqual(t, b.Next(answerOf(ServerError), 0), 30*time.Second)
	}
}

func TestCauseOfNamesTheReasonOfACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	require.Equal(t, io.EOF, stream.Cause(ctx, io.EOF))
	cancel(stream.ErrSilent)
	require.Equal(t, stream.ErrSilent, stream.Cause(ctx, context.Canceled))
	require.NoError(t, stream.Cause(ctx, nil))
	bad := &listwatch.DecodeError{Err: io.EOF}
	require.Equal(t, error(bad), stream.Cause(ctx, bad))
}
