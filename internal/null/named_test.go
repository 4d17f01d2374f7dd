package null_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

type pod = *corev1.Pod

// outcome is the error of a call, or the text of its panic.
func outcome(call func() error) (text string) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case runtime.Error:
			text = "a bare panic: " + v.Error()
		default:
			text = fmt.Sprint(v)
		}
	}()
	if err := call(); err != nil {
		return err.Error()
	}
	return "nothing"
}

func done[T any](T) error { return nil }

// TestWhatIsMissingIsNamed: a nil option or argument gives an error, or a panic, that names the
// function and says what to give.
func TestWhatIsMissingIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	pods := listwatchtest.New(t, listwatchtest.Pods())
	client, err := listwatch.NewRESTClient(pods.Server().Config(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	source := pods.ListerWatcher()
	list := func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
		return nil, errors.New("not called")
	}
	watches := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return nil, errors.New("not called")
	}
	kind := listwatchtest.Pods()
	for want, call := range map[string]func() error{
		"listwatch: FromClient: option 2 is nil": func() error {
			return done(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.WithJSON(), nil))
		},
		"listwatch: FromClientLike: option 1 is nil": func() error { return done(listwatch.FromClientLike[pod](client, "pods", &corev1.Pod{}, nil)) },
		"listwatch: FromFuncs: option 1 is nil":      func() error { return done(listwatch.FromFuncs[pod](list, watches, nil)) },
		"listwatch: FromClientGo: option 1 is nil":   func() error { return done(listwatch.FromClientGo[pod](listwatch.ToClientGo(source), nil)) },
		"listwatch: ToClientGo: option 1 is nil":     func() error { return done(listwatch.ToClientGo(source, nil)) },
		"listwatch: Project: option 1 is nil":        func() error { return done(listwatch.Project(source, func(p pod) pod { return p }, nil)) },
		"listwatch: ScopeOf: option 1 is nil":        func() error { return done(listwatch.ScopeOf(nil)) },
		"listwatch: Fields: the selector is nil":     func() error { return done(listwatch.Fields(nil)) },
		"listwatch: Labels: the selector is nil":     func() error { return done(listwatch.Labels(nil)) },
		"listwatch: Holding: the function is nil":    func() error { return done(source.Holding(nil)) },
		"listwatch: NewRESTClient: the config is nil": func() error {
			_, err := listwatch.NewRESTClient(nil, schema.GroupVersion{Version: "v1"})
			return err
		},
		"listwatchtest: Disconnect: option 1 is nil": func() error {
			w := &witness{TB: t}
			defer func() {
				if w.text != "" {
					panic(w.text)
				}
			}()
			listwatchtest.New(w, listwatchtest.Pods()).Disconnect(nil).Lift()
			return nil
		},
		"reflector: option 1 is nil": func() error {
			return reflector.New(source, store.NewIndexer[pod](), nil).Run(ctx)
		},
		"reflector: WithMetrics(nil)": func() error {
			return reflector.New(source, store.NewIndexer[pod](), reflector.WithMetrics(nil)).Run(ctx)
		},
		"reflector: ReadyHandler: copy 1 is nil": func() error { return done(reflector.ReadyHandler(time.Minute, nil)) },
		"informer: option 1 is nil":              func() error { return informer.New(source, nil).Run(ctx) },
		"informer: WithReflector: reflector: option 1 is nil": func() error {
			return informer.New(source, informer.WithReflector(nil)).Run(ctx)
		},
		"informer: add a handler: option 1 is nil": func() error {
			_, err := informer.New(source).AddHandler(func(informer.Event[pod]) {}, nil)
			return err
		},
		"informer: add a handler: option 1 is nil: leave": func() error {
			for range informer.New(source).Events(ctx, nil) {
			}
			return nil
		},
		"informer: option 1 is nil: leave":        func() error { return informer.NewUnion[pod](nil).Run(ctx) },
		"informer: option 1 is nil: leave it out": func() error { return informer.NewSet(&rest.Config{}, nil).Run(ctx) },
		"informer: NewSet: the config is nil":     func() error { return informer.NewSet(nil).Run(ctx) },
		"informer: Acquire: the set is nil": func() error {
			_, err := informer.Acquire[corev1.Pod](nil, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
			return err
		},
		"listwatch: ScopeOf: option 1 is nil: leave it out": func() error {
			_, err := informer.Acquire[corev1.Pod](informer.NewSet(&rest.Config{}), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, nil)
			return err
		},
		"store: AddIndexes: index 1 is nil: make it with NewIndex": func() error {
			informer.New(source).AddIndexes(nil)
			return nil
		},
		"store: NewIndexer: index 1 is nil": func() error { return done(store.NewIndexer[pod](nil)) },
		"undelta: New: ":                    func() error { return done(undelta.New[pod](nil)) },
		"refs: option 1 is nil":             func() error { return refs.New(refs.FromClient[corev1.Pod](client, "pods"), nil).Run(ctx) },
		"sources: New: option 1 is nil":     func() error { return sources.New("node-1", nil).Run(ctx) },
		"lookup: New: the sources are nil":  func() error { return done(lookup.New(nil)) },
		"lookup: New: option 1 is nil":      func() error { return done(lookup.New(sources.New("node-1"), nil)) },
		"status: Track: the reporter of \"pods\" is nil": func() error {
			new(status.Handler).Track("pods", nil)
			return nil
		},
		"prom: New: the registerer is nil": func() error {
			_, err := prom.New(nil)
			return err
		},
		"watchcache: option 1 is nil": func() error {
			_, err := watchcache.NewCache(kind.Kind, nil)
			return err
		},
		"watchcache: option 1 is nil: leave": func() error {
			_, err := apiserver.NewServer(nil)
			return err
		},
		"collection: New: the revision is nil": func() error {
			_, err := collection.New(kind.Kind, kind.Rules, nil)
			return err
		},
	} {
		got := outcome(call)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s\n    got %s", want, got)
		}
	}
}

type witness struct {
	testing.TB
	text string
}

func (w *witness) Fatalf(format string, args ...any) { w.text = fmt.Sprintf(format, args...) }
