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

// Observer hears of a wait when it begins, and of its end by the function that it returns. Both
// are called on the goroutine that sends the request, or on one that the request starts.
type Observer func(Wait) (ended func())

type key struct{}

// Observed returns a context for requests whose waits observe hears of.
func Observed(ctx context.Context, observe Observer) context.Context {
	return context.WithValue(ctx, key{}, observe)
}

// Begin tells the observer of ctx, if there is one, that a wait begins. Call ended at its end.
func Begin(ctx context.Context, wait Wait) (ended func()) {
	if observe, ok := ctx.Value(key{}).(Observer); ok {
		return observe(wait)
	}
	return func() {}
}
