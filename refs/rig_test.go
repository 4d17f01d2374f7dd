package refs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
)

const ns = "shop"

// rig is a set of references to the Secrets of a fake server.
type rig struct {
	*refs.Refs[*corev1.Secret]
	t      *testing.T
	server *listwatchtest.Collection[*corev1.Secret]
	source refs.Source[*corev1.Secret]
	stop   func() // ends Run, and waits for it
}

// newRig makes references that run until the test ends; it must be called in a bubble.
func newRig(t *testing.T, options ...refs.Option) *rig {
	t.Helper()
	r := newQuietRig(t, options...)
	r.run()
	return r
}

// newQuietRig does not call Run.
func newQuietRig(t *testing.T, options ...refs.Option) *rig {
	t.Helper()
	server := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	client, err := listwatch.NewRESTClient(server.Server().Config(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	source := refs.FromClient[corev1.Secret](client, "secrets")
	return &rig{Refs: refs.New(source, options...), t: t, server: server, source: source}
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		require.NoError(r.t, <-ended)
		ended <- nil
	}
	r.t.Cleanup(r.stop)
}

// put creates or replaces a Secret with one value.
func (r *rig) put(name, value string) *corev1.Secret {
	r.t.Helper()
	obj := secret(name, value)
	if held, err := r.server.Origin().Get(ns, name); err == nil {
		obj.ResourceVersion, obj.UID = held.ResourceVersion, held.UID
		return r.server.Update(obj)
	}
	return r.server.Create(obj)
}

func (r *rig) putImmutable(name, value string) *corev1.Secret {
	r.t.Helper()
	obj, yes := secret(name, value), true
	obj.Immutable = &yes
	if held, err := r.server.Origin().Get(ns, name); err == nil {
		obj.ResourceVersion, obj.UID = held.ResourceVersion, held.UID
		return r.server.Update(obj)
	}
	return r.server.Create(obj)
}

func (r *rig) remove(name string) { r.t.Helper(); r.server.Delete(secret(name, "")) }

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"value": []byte(value)},
	}
}

// value is that of a Secret which must be there.
func (r *rig) value(name string) string {
	r.t.Helper()
	obj, err := r.Get(r.t.Context(), ns, name)
	require.NoError(r.t, err)
	return string(obj.Data["value"])
}

// watches is the number of open watches.
func (r *rig) requests() int {
	synctest.Wait()
	return len(r.server.Server().Requests())
}

// within returns a context that ends after some time of the bubble.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// discard is a logger that says nothing.
var discard = logr.Discard()
