package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/controller/leader"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

type world struct {
	*testing.T
	leases *listwatchtest.Collection[*coordinationv1.Lease]
	maps   *listwatchtest.Collection[*corev1.ConfigMap]
}

func newWorld(t *testing.T) *world {
	leases := listwatchtest.New(t, listwatchtest.Of[*coordinationv1.Lease]())
	return &world{t, leases, listwatchtest.Serve(leases.Server(), listwatchtest.Of[*corev1.ConfigMap]())}
}

// replica is an election with a client that it gates.
func (w *world) replica(identity string) (*leader.Election, kubernetes.Interface) {
	e := &leader.Election{Namespace: "ns", Name: "web", Identity: identity}
	config := rest.CopyConfig(w.leases.Server().Config())
	config.Wrap(e.Gate)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(w, err)
	e.Client = client.CoordinationV1() // its own lease passes the gate
	return e, client
}

// run runs an election until the result is called, which returns Run's error.
func (w *world) run(e *leader.Election, work func(lead, stop context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(logr.NewContext(w.Context(), logr.Discard()))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx, work) }()
	return func() error { cancel(); return <-ended }
}

func write(client kubernetes.Interface, name string) error {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().ConfigMaps("ns").Create(context.Background(), made, metav1.CreateOptions{})
	return err
}

// TestOneReplicaWorks at a time, and another takes over at once from one that has done its work.
func TestOneReplicaWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var working atomic.Pointer[string] // nil: none
		work := func(name string) func(lead, stop context.Context) error {
			return func(_, stop context.Context) error {
				require.Nil(t, working.Swap(&name))
				<-stop.Done()
				working.Store(nil)
				return nil
			}
		}
		first, one := w.replica("first")
		second, two := w.replica("second")
		stopFirst := w.run(first, work("first"))
		time.Sleep(time.Second)
		stopSecond := w.run(second, work("second"))
		time.Sleep(time.Minute)
		require.Equal(t, "first", *working.Load())
		require.True(t, first.Leads())
		require.False(t, second.Leads())
		require.NoError(t, write(one, "a"))
		err := write(two, "b")
		require.ErrorContains(t, err, "leader: POST /api/v1/namespaces/ns/configmaps is refused: this replica does not hold the lease ns/web")
		_, err = two.CoreV1().ConfigMaps("ns").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err, "it may read")
		review := &authorizationv1.SelfSubjectAccessReview{}
		_, err = two.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		require.NotContains(t, fmt.Sprint(err), "is refused")

		require.NoError(t, stopFirst())
		time.Sleep(5 * time.Second)
		require.Equal(t, "second", *working.Load())
		require.NoError(t, write(two, "b"))
		require.Error(t, write(one, "c"))
		lease, err := w.leases.Origin().Get("ns", "web")
		require.NoError(t, err)
		require.Equal(t, int32(1), *lease.Spec.LeaseTransitions)
		require.NoError(t, stopSecond())
	})
}

// TestALostLease ends the context of the work, and then Run with ErrLost. What the work does after
// that is refused.
func TestALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, client := w.replica("first")
		began := time.Now()
		ended := make(chan error, 1)
		go func() {
			ended <- e.Run(logr.NewContext(t.Context(), logr.Discard()), func(lead, _ context.Context) error {
				w.leases.Fail(listwatchtest.Update, apierrors.NewInternalError(errors.New("no etcd")), listwatchtest.UntilLifted())
				<-lead.Done()
				require.ErrorContains(t, write(client, "late"), "is refused")
				time.Sleep(time.Minute) // a call that ignores its context
				return write(client, "later")
			})
		}()
		time.Sleep(9 * time.Second)
		require.NoError(t, write(client, "in-time"))
		time.Sleep(3 * time.Second)
		require.False(t, e.Leads())
		err := <-ended
		require.ErrorIs(t, err, leader.ErrLost)
		require.ErrorContains(t, err, "POST /api/v1/namespaces/ns/configmaps is refused")
		require.Less(t, time.Since(began), 90*time.Second)
	})
}

// TestWorkThatFailsKeepsTheLease until it has run out: something of it may still be at work.
func TestWorkThatFailsKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e, _ := w.replica("first")
		left := errors.New("a call has not returned")
		stop := w.run(e, func(context.Context, context.Context) error { return left })
		time.Sleep(time.Second)
		require.ErrorIs(t, stop(), left)
		lease, err := w.leases.Origin().Get("ns", "web")
		require.NoError(t, err)
		require.Equal(t, "first", *lease.Spec.HolderIdentity)
	})
}

func TestBadFields(t *testing.T) {
	w := newWorld(t)
	require.EqualError(t, new(leader.Election).Run(t.Context(), nil), "leader: give Client, Namespace and Name")
	e, _ := w.replica("")
	e.RenewDeadline = time.Hour
	require.EqualError(t, e.Run(t.Context(), nil), "leader: leaseDuration must be greater than renewDeadline")
}
