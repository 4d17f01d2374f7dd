package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// timeline records how a follower's Status changes.
type timeline struct {
	began time.Time
	stop  func()

	mu      sync.Mutex // guards moments
	moments []moment
}

type moment struct {
	at     time.Duration
	status reflector.Status
}

// watchStatus samples a follower's Status from now until the test or stop ends it.
func watchStatus(t testing.TB, f follower) *timeline {
	l := &timeline{began: time.Now()}
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			l.sample(f.status())
			select {
			case <-ticker.C:
			case <-end:
				return
			}
		}
	})
	l.stop = sync.OnceFunc(func() { close(end); done.Wait() })
	t.Cleanup(l.stop)
	return l
}

// sample keeps a status whose class is another than the last one's.
func (l *timeline) sample(s reflector.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.moments); n == 0 || l.moments[n-1].status.Class != s.Class {
		l.moments = append(l.moments, moment{time.Since(l.began), s})
	}
}

// first is when a class was first seen after a moment of the timeline.
func (l *timeline) first(class reflector.Class, after time.Duration) (moment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range l.moments {
		// A moment lasts until the next one.
		lasts := i == len(l.moments)-1 || l.moments[i+1].at > after
		if m.status.Class == class && lasts {
			return m, true
		}
	}
	return moment{}, false
}

// now is the present on the timeline.
func (l *timeline) now() time.Duration { return time.Since(l.began) }

// String lists the classes as they came.
func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := make([]string, len(l.moments))
	for i, m := range l.moments {
		parts[i] = fmt.Sprintf("%s at %s", m.status.Class, m.at.Round(10*time.Millisecond))
	}
	return strings.Join(parts, ", ")
}

// untilClass waits until the follower's Status shows a class, and returns when it did, counted from
// since.
func untilClass(t testing.TB, l *timeline, class reflector.Class, since, within time.Duration) time.Duration {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if m, ok := l.first(class, since); ok {
			return max(0, m.at-since)
		}
		if l.now() > since+within {
			t.Fatalf("%q does not show within %s: %s", class, within, l)
		}
		<-ticker.C
	}
}
