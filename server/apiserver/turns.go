package apiserver

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// bodiesAtOnce bounds the bodies of the writes that are under way, in bytes: a write takes a
	// multiple of its body. Ten of the largest bodies run at once.
	bodiesAtOnce = 32 << 20
	// smallestBody is the least that a write counts for, so that 512 run at once.
	smallestBody = 64 << 10
	// bodyPatience is how long a client may take to send a body, as kube-apiserver has it.
	bodyPatience = time.Minute
	// turnPatience is how long a write waits for others.
	turnPatience = 30 * time.Second
)

// turns lets writes begin in the order of their arrival, as far as their bodies have room.
type turns struct {
	first  chan struct{} // of the only write that takes places, so that none waits for another's
	places chan struct{} // that are taken, of smallestBody each
}

// turn is how many places a write has.
type turn int

func newTurns() turns {
	return turns{first: make(chan struct{}, 1), places: make(chan struct{}, bodiesAtOnce/smallestBody)}
}

// take waits for a turn. Its error is a 429.
func (t turns) take(ctx context.Context, bytes int) (mine turn, err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	busy := apierrors.NewTooManyRequests("too many writes are under way: try again", 1)
	select {
	case t.first <- struct{}{}:
		defer func() { <-t.first }()
	case <-ctx.Done():
		return 0, busy
	}
	for wanted := turn(max(1, (bytes+smallestBody-1)/smallestBody)); mine < wanted; mine++ {
		select {
		case t.places <- struct{}{}:
		case <-ctx.Done():
			t.give(mine)
			return 0, busy
		}
	}
	return mine, nil
}

// give ends a turn.
func (t turns) give(mine turn) {
	for range mine {
		<-t.places
	}
}
