package howto_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/controller/leader"
	"github.com/tributary-go/tributary/examples/howto"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// greeter is a cluster with the controller.
type greeter struct {
	namespaces *listwatchtest.Collection[*corev1.Namespace]
	greetings  *listwatchtest.Collection[*corev1.ConfigMap]
	leases     *listwatchtest.Collection[*coordinationv1.Lease]
}

func greet(t *testing.T, test func(t *testing.T, g *greeter, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		namespaces := listwatchtest.New(t, listwatchtest.Of[*corev1.Namespace]())
		g := &greeter{
			namespaces: namespaces,
			greetings:  listwatchtest.Serve(namespaces.Server(), listwatchtest.Of[*corev1.ConfigMap]()),
			leases:     listwatchtest.Serve(namespaces.Server(), listwatchtest.Of[*coordinationv1.Lease]()),
		}
		ctx, stop := context.WithCancel(logr.NewContext(t.Context(), logr.Discard()))
		ended := make(chan error, 1)
		go func() {
			lease := &leader.Election{Namespace: "default", Name: "greetings"}
			ended <- howto.Greet(ctx, namespaces.Server().Config(), lease)
			close(ended)
		}()
		g.join("shop")
		test(t, g, ended)
		stop()
		<-ended
	})
}

func (g *greeter) join(name string) *corev1.Namespace {
	return g.namespaces.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (g *greeter) greeted(name string) bool {
	_, err := g.greetings.Origin().Get(name, "greeting")
	return err == nil
}

// TestGreet: namespaces that come, and a greeting that is removed.
func TestGreet(t *testing.T) {
	greet(t, func(t *testing.T, g *greeter, _ <-chan error) {
		synctest.Wait() // nothing is left to be done
		require.True(t, g.greeted("shop"))
		g.join("bank")
		synctest.Wait()
		require.True(t, g.greeted("bank"))
		now, err := g.greetings.Origin().Get("bank", "greeting")
		require.NoError(t, err)
		g.greetings.Remove(now)
		synctest.Wait()
		require.True(t, g.greeted("bank"))
	})
}

// TestGreetAgain: a write that fails is tried again, and no second one is made by a stale copy.
func TestGreetAgain(t *testing.T) {
	greet(t, func(t *testing.T, g *greeter, _ <-chan error) {
		synctest.Wait()
		refused := apierrors.NewInternalError(errors.New("no etcd"))
		g.greetings.Fail(listwatchtest.Create, refused, listwatchtest.Times(3))
		g.join("bank")
		synctest.Wait()
		require.False(t, g.greeted("bank"))
		time.Sleep(time.Second) // of the bubble: the back-off is 5 ms, 10, 20
		require.True(t, g.greeted("bank"))
		require.Len(t, g.greetings.Server().Requests(listwatchtest.Create), 1+1+4, "the lease, shop, and four for bank")
	})
}

// TestGreetWithoutItsLease: it stops before another replica may work.
func TestGreetWithoutItsLease(t *testing.T) {
	greet(t, func(t *testing.T, g *greeter, ended <-chan error) {
		synctest.Wait()
		refused := apierrors.NewInternalError(errors.New("no etcd"))
		g.leases.Fail(listwatchtest.Update, refused, listwatchtest.UntilLifted())
		require.ErrorIs(t, <-ended, leader.ErrLost)
		g.join("bank")
		time.Sleep(time.Hour)
		require.False(t, g.greeted("bank"))
	})
}
