package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// follower is one reflector under test, with its store and what it sent.
type follower interface {
	name() string
	status() reflector.Status
	waitSynced(ctx context.Context) error
	ready(maxStaleness time.Duration) error
	sent() *wire
	account() account
	// version is the store's.
	version() string
	// find returns the version of what the store holds under a key; empty if nothing.
	find(key string) string
	// difference compares the store with a fresh and consistent LIST.
	difference(ctx context.Context) error
	// wait returns what Run returned, once it has.
	wait() error
	// stop ends the reflector and waits.
	stop() error
}

// follow starts a reflector on source. It ends with the test at the latest.
func follow[T store.Object](t testing.TB, name string, s source[T], options []reflector.Option) follower {
	t.Helper()
	history := newHistory[T]()
	ctx, cancel := context.WithCancel(context.Background())
	f := &following[T]{
		title: name, wire: s.wire, fresh: s.fresh, history: history, cancel: cancel,
		reflector: reflector.New(s.reads, history, options...),
	}
	f.done.Go(func() { f.ended = f.reflector.Run(ctx) })
	t.Cleanup(func() { _ = f.stop() })
	return f
}

// source is what is followed, and how client-go's clients list the same, for comparison.
type source[T store.Object] struct {
	wire  *wire
	reads listwatch.ListerWatcher[T]
	fresh func(ctx context.Context) ([]T, error)
}

type following[T store.Object] struct {
	title     string
	wire      *wire
	fresh     func(context.Context) ([]T, error)
	reflector *reflector.Reflector[T]
	history   *history[T]

	cancel context.CancelFunc
	done   sync.WaitGroup
	ended  error
}

func (f *following[T]) name() string                         { return f.title }
func (f *following[T]) status() reflector.Status             { return f.reflector.Status() }
func (f *following[T]) waitSynced(ctx context.Context) error { return f.reflector.WaitSynced(ctx) }
func (f *following[T]) ready(stale time.Duration) error      { return f.reflector.Ready(stale) }
func (f *following[T]) sent() *wire                          { return f.wire }
func (f *following[T]) account() account                     { return f.history.account() }
func (f *following[T]) version() string                      { return f.history.Snapshot().ResourceVersion() }

func (f *following[T]) find(key string) string {
	if obj, ok := f.history.Snapshot().Get(key); ok {
		return obj.GetResourceVersion()
	}
	return ""
}

func (f *following[T]) wait() error {
	f.done.Wait()
	return f.ended
}

func (f *following[T]) stop() error {
	f.cancel()
	return f.wait()
}

func (f *following[T]) difference(ctx context.Context) error {
	items, err := f.fresh(ctx)
	if err != nil {
		return err
	}
	fresh := map[string]T{}
	for _, obj := range items {
		fresh[store.KeyOf(obj)] = obj
	}
	var differ []error
	held := f.history.Snapshot()
	for key, obj := range held.All() {
		now, there := fresh[key]
		switch {
		case !there:
			differ = append(differ, fmt.Errorf("%s is held but not there", key))
		case now.GetResourceVersion() != obj.GetResourceVersion():
			differ = append(differ, fmt.Errorf("%s is held at %s and there at %s", key, obj.GetResourceVersion(), now.GetResourceVersion()))
		case !equality.Semantic.DeepEqual(content(now), content(obj)):
			differ = append(differ, fmt.Errorf("%s differs at the same version", key))
		}
	}
	for key := range fresh {
		if _, ok := held.Get(key); !ok {
			differ = append(differ, fmt.Errorf("%s is there but not held", key))
		}
	}
	if len(differ) > 5 {
		differ = append(differ[:5], fmt.Errorf("and %d more", len(differ)-5))
	}
	return errors.Join(differ...)
}

// requireWhole waits until a follower's store equals a fresh LIST, and checks all that its history
// has seen.
func requireWhole(t testing.TB, f follower, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		err := f.difference(ctx)
		if err == nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			require.NoError(t, err, "%s after %s: %s", f.name(), within, f.status())
		}
	}
	require.Empty(t, f.account().violations, f.name())
}

func requireSynced(t testing.TB, f follower, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	require.NoError(t, f.waitSynced(ctx), f.name())
}

// lists is the number of lists that completed, whatever their cause.
func lists(f follower) (n int) {
	for _, some := range f.status().Lists {
		n += some
	}
	return n
}

// content is what must be equal in an object that came in two ways: all of it, but for the type of
// bare metadata, which a list has once for all of its items.
func content(obj any) any {
	if metadata, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return metadata.ObjectMeta
	}
	return obj
}
