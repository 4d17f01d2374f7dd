package listwatchtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// witness is a test that can fail without failing the test that uses it. Its goroutine ends there,
// as a real one's does, and then it cleans up.
type witness struct {
	testing.TB
	message  string
	cleanups []func()
}

func (w *witness) Errorf(format string, args ...any) { w.message = fmt.Sprintf(format, args...) }

func (w *witness) Fatalf(format string, args ...any) {
	w.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *witness) Failed() bool { return w.message != "" }

func (w *witness) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }

func (w *witness) cleanUp() {
	for _, f := range slices.Backward(w.cleanups) {
		f()
	}
}

// failure returns the message with which a misuse of the fake fails its test.
func failure(t *testing.T, use func(pods *listwatchtest.Collection[*corev1.Pod])) (message string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer w.cleanUp()
			use(listwatchtest.New(w, listwatchtest.Pods()))
		}()
		<-done
		message = w.message
	})
	return message
}

func TestMisuseFailsTheTest(t *testing.T) {
	type collection = listwatchtest.Collection[*corev1.Pod]
	for want, use := range map[string]func(*collection){
		`listwatchtest: update Pod "ns/a": pods "a" not found`: func(p *collection) { p.Update(pod("a")) },
		`listwatchtest: remove Pod "ns/a": pods "a" not found`: func(p *collection) { p.Remove(pod("a")) },
		`listwatchtest: create Pod "ns/a": pods "a" already exists`: func(p *collection) {
			p.Create(pod("a"))
			p.Create(pod("a"))
		},
		`listwatchtest: metadata.labels was written into: "ns/a", read at version 2. Objects that are read are shared: copy before you change one`: func(p *collection) {
			p.Create(pod("a"))
			for a, err := range p.ListerWatcher().List(context.Background(), metav1.ListOptions{}).Items {
				if err == nil {
					a.Labels = map[string]string{"mine": "yes"}
				}
			}
		},
		"listwatchtest: Mute: Times(0): a fault strikes once at least": func(p *collection) {
			p.Mute(listwatchtest.Times(0))
		},
		"listwatchtest: Fail(create) of pods never struck: no request fitted it before the end of the test. " +
			"Make the fault before the request, wait for it with Wait, or Lift it if it may miss": func(p *collection) {
			p.Fail(listwatchtest.Create, errors.New("by order of a test"))
			p.Fail(listwatchtest.Create, errors.New("by order of a test")).Lift()
			p.Expire() // has its effect at once
		},
		"listwatchtest: waited 6h0m0s for Truncate to strike 3 times; the last requests:\n": func(p *collection) {
			p.Truncate(listwatchtest.Times(3)).Wait()
		},
		"listwatchtest: waited 6h0m0s for 2 watches that stand; the last requests:\n": func(p *collection) {
			p.Server().AwaitWatches(2)
		},
		"listwatchtest: waited 6h0m0s for 1 requests [list], and saw 0; the last requests:\n": func(p *collection) {
			p.Server().AwaitRequests(1, listwatchtest.List)
		},
	} {
		require.Equal(t, want, failure(t, use))
	}
}
