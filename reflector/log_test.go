package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// logged collects all lines of a logger.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) logger(verbosity int) logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: verbosity})
}

// with returns the lines that contain each of the texts.
func (l *logged) with(texts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

// TestFailuresAreLoggedByDefault: without an option, the logger of the context is told, else
// klog's; what a person must mend is an error, and is told once.
func TestFailuresAreLoggedByDefault(t *testing.T) {
	run := func(t *testing.T, err error, in func(context.Context) context.Context, options ...reflector.Option) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(in(t.Context()), time.Minute)
			defer cancel()
			r := reflector.New[*corev1.Pod](forever{err: err}, store.NewIndexer[*corev1.Pod](), options...)
			require.NoError(t, r.Run(ctx))
			require.Greater(t, r.Status().Attempts, 3)
		})
	}
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err     error
		isError bool
		infos   int
	}{
		"401":          {apierrors.NewUnauthorized("who are you"), true, 0},
		"403":          {errForbidden, true, 0},
		"404 for long": {apierrors.NewNotFound(pods, ""), true, 1},
		"500":          {apierrors.NewInternalError(errors.New("etcd is away")), false, 1},
		"429":          {apierrors.NewTooManyRequests("later", 1), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var l logged
			run(t, c.err, func(ctx context.Context) context.Context { return klog.NewContext(ctx, l.logger(0)) })
			failing := l.with("List-watch is failing")
			require.Len(t, l.with(`"logger"`), 0)
			errorLines := l.with("List-watch is failing", `"error"=`)
			require.Len(t, failing, c.infos+len(errorLines), "%v", failing)
			require.Equal(t, c.isError, len(errorLines) == 1, "%v", failing)
			require.Len(t, l.with(`"type"="*v1.Pod"`), len(failing))
		})
	}
	t.Run("klog", func(t *testing.T) {
		var l logged
		klog.SetLogger(l.logger(0))
		defer klog.SetLogger(logr.Discard())
		run(t, errForbidden, func(ctx context.Context) context.Context { return ctx })
		require.Len(t, l.with("List-watch is failing", `"error"=`), 1)
	})
	t.Run("the option wins", func(t *testing.T) {
		var l, own logged
		run(t, errForbidden, func(ctx context.Context) context.Context { return klog.NewContext(ctx, l.logger(9)) },
			reflector.WithLogger(own.logger(0)))
		require.Empty(t, l.lines)
		require.Len(t, own.with("List-watch is failing", `"error"=`), 1)
		run(t, errForbidden, func(ctx context.Context) context.Context { return klog.NewContext(ctx, l.logger(9)) },
			reflector.WithLogger(logr.Discard()))
		require.Empty(t, l.lines)
	})
}

// TestClassesThatAlternateAreLoggedOnce: a watch list and the LIST after it fail in two ways, again
// and again.
func TestClassesThatAlternateAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logged
		source := listwatch.FromFuncs[*corev1.Pod](func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
			return nil, errForbidden
		}, func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, apierrors.NewInternalError(errors.New("etcd is away"))
		})
		r := reflector.New(source, store.NewIndexer[*corev1.Pod](), reflector.WithLogger(l.logger(0)))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.NoError(t, r.Run(ctx))
		require.Greater(t, r.Status().Attempts, 20)
		require.Len(t, l.with("List-watch is failing", `"class"="server_error"`), 1)
		require.Len(t, l.with("List-watch is failing", `"class"="forbidden"`), 1)
		require.Len(t, l.lines, 2)
	})
}

// TestNoLineHoldsASecret: whatever a server answers, its bodies, the objects' values and the
// client's token stay out of the log and of Status. From level 8 on client-go itself writes bodies.
func TestNoLineHoldsASecret(t *testing.T) {
	const secret = "c2VjcmV0"
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s]}`
	answers := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { http.Error(w, "broken: "+secret, http.StatusInternalServerError) },
		func(w http.ResponseWriter) { http.Error(w, "<html>"+secret, http.StatusForbidden) },
		func(w http.ResponseWriter) { fmt.Fprint(w, "not a list: "+secret) },
		func(w http.ResponseWriter) { fmt.Fprintf(w, list, `{"metadata":{"name":"a","labels":"`+secret+`"}}`) },
		func(w http.ResponseWriter) {
			fmt.Fprintf(w, list, `{"metadata":{"name":"a"},"spec":{"hostname":{"`+secret+`":1}}}`)
		},
		func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"type":"%s","object":{"metadata":{"name":"a"},"spec":"%s"}}`, secret, secret)
		},
		func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":"%s"}}`, secret)
		},
	}
	for i, answer := range answers {
		for _, options := range [][]listwatch.Option{{listwatch.WithoutWatchList()}, nil} {
			t.Run(fmt.Sprintf("%d, %d options", i, len(options)), func(t *testing.T) {
				asked := make(chan struct{}, 1000)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					answer(w)
					asked <- struct{}{}
				}))
				defer server.Close()
				config := &rest.Config{Host: server.URL, QPS: -1, BearerToken: secret + ".token"}
				client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
				require.NoError(t, err)
				defer client.(*rest.RESTClient).Client.CloseIdleConnections()
				var l logged
				ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), l.logger(7)))
				r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods", options...), store.NewIndexer[*corev1.Pod](),
					reflector.WithBackoff(time.Millisecond, 2*time.Millisecond))
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				for range 4 {
					<-asked
				}
				cancel()
				require.NoError(t, <-ended)
				require.NotEmpty(t, l.lines)
				require.Empty(t, l.with(secret))
				require.NotContains(t, r.Status().String(), secret)
			})
		}
	}
}

// TestEachLineNamesItsCollection: resource and namespace, which the type of a custom resource does
// not tell; and each line has one error at most.
func TestEachLineNamesItsCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		client, err := listwatch.NewRESTClient(pods.Server().Config(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		source := listwatch.Project(listwatch.FromClient[unstructured.Unstructured](client, "pods", listwatch.InNamespace("shop")),
			func(u *unstructured.Unstructured) *unstructured.Unstructured { return u })
		var l logged
		r := reflector.New(listwatch.Intercept(source, nil, nil), store.NewIndexer[*unstructured.Unstructured](), reflector.WithLogger(l.logger(2)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		require.NoError(t, r.WaitSynced(ctx))
		pods.Fail(listwatchtest.Watch, errForbidden)
		pods.Disconnect().Wait()
		time.Sleep(10 * time.Minute) // of the simulated clock
		cancel()
		require.NoError(t, <-ended)
		require.NotEmpty(t, l.with(`"msg"="List-watch is failing"`))
		require.NotEmpty(t, l.with(`"msg"="List-watch is well again"`))
		require.Len(t, l.with(`"type"="*unstructured.Unstructured" "resource"="pods" "namespace"="shop"`), len(l.lines))
		for _, line := range l.lines {
			require.LessOrEqual(t, strings.Count(line, `"error"=`), 1, line)
			require.NotContains(t, line, `"error"=null`)
		}
	})
}
