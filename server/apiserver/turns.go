package apiserver

import (
	"context"
	"sync"
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
	mu      sync.Mutex
	taken   int // bytes
	waiting []*turn
}

// turn is one write's.
type turn struct {
	bytes int
	begun chan struct{} // closed when it may begin
}

// take waits for a turn. Its error is a 429.
func (t *turns) take(ctx context.Context, bytes int) (*turn, error) {
	mine := &turn{bytes: max(bytes, smallestBody)}
	t.mu.Lock()
	if len(t.waiting) == 0 && t.taken+mine.bytes <= bodiesAtOnce {
		t.taken += mine.bytes
		t.mu.Unlock()
		return mine, nil
	}
	mine.begun = make(chan struct{})
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	select {
	case <-mine.begun:
		return mine, nil
	case <-ctx.Done():
		t.leave(mine)
		return nil, apierrors.NewTooManyRequests("too many writes are under way: try again", 1)
	}
}

// give ends a turn.
func (t *turns) give(mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken -= mine.bytes
	t.beginLocked()
}

// leave takes a turn back that may have begun meanwhile.
func (t *turns) leave(mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine.begun:
		t.taken -= mine.bytes
	default:
		for i, other := range t.waiting {
			if other == mine {
				t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
				break
			}
		}
	}
	t.beginLocked()
}

func (t *turns) beginLocked() {
	for len(t.waiting) > 0 && t.taken+t.waiting[0].bytes <= bodiesAtOnce {
		t.taken += t.waiting[0].bytes
		close(t.waiting[0].begun)
		t.waiting = t.waiting[1:]
	}
}
