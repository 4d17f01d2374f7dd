// Package sending lets a source tell its reader that a request waits at the client, and is not sent
// yet. A reader that bounds the time of an answer counts from the moment of sending.
package sending

import (
	"context"
	"time"
)

// Wait is a wait before a request is sent.
type Wait struct {
	For Reason
	// Since is when the request was asked for.
	Since time.Time
	// QPS is the pace of the client's rate limiter, in requests a second; zero for other reasons.
	QPS float32
}

// Reason is the cause of a wait.
type Reason uint8

const (
	// Limiter is the client's own rate limiter.
	Limiter Reason = iota
	// Server is the pace of requests to a server that many collections share.
	Server
)

// Reader is the reader of a request, as far as its sender must know it.
type Reader struct {
	// Waits hears of a wait when it begins, and of its end by the function that it returns. Both
	// are called on the goroutine that sends the request. A request may wait more than once.
	Waits func(Wait) (ended func())
	// Yields: all other requests of the client may go before this one.
	Yields bool
}

type key struct{}

// For returns a context for the requests of a reader.
func For(ctx context.Context, r Reader) context.Context { return context.WithValue(ctx, key{}, r) }

// Begin tells the reader of ctx, if there is one, that a wait begins. Call ended at its end.
func Begin(ctx context.Context, wait Wait) (ended func()) {
	if r, ok := ctx.Value(key{}).(Reader); ok {
		return r.Waits(wait)
	}
	return func() {}
}

// Yields reports whether the request of ctx lets all others of the client go first.
func Yields(ctx context.Context) bool {
	r, ok := ctx.Value(key{}).(Reader)
	return ok && r.Yields
}
