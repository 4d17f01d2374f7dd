package refs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
)

// TestNamesAreFollowedWhileTheyHaveAnOwner is the kubelet's counting of references: the first owner
// of a name begins its watch, further ones cost nothing, and the last one ends it.
func TestNamesAreFollowedWhileTheyHaveAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("tls", "1")
		r.put("other", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"))
		require.Equal(t, 1, r.requests(), "one request reads the state and follows it")
		request := r.server.Server().Requests()[0]
		require.Equal(t, "watch secrets namespace=shop match=NotOlderThan fields=metadata.name=tls initial=true", request.String())

		r.put("tls", "2")
		synctest.Wait()
		require.Equal(t, "2", r.value("tls"), "the watch brings a change")

		for range 20 {
			r.SetOwner("another", refs.In(ns, "tls"))
			r.SetOwner("another", nil)
		}
		require.Equal(t, 1, r.requests())

		r.SetOwner("pod", nil)
		r.server.Server().AwaitWatches(0)
		_, err := r.Get(t.Context(), ns, "tls")
		require.ErrorIs(t, err, refs.ErrNotReferred)
		require.Equal(t, 1, r.requests())
		require.Empty(t, r.Owners(ns, "tls"))
	})
}

// TestReferencesAreCounted has the kubelet's table of references. An owner has a name once, however
// often it says so.
func TestReferencesAreCounted(t *testing.T) {
	r := newQuietRig(t)
	owners := func(name string) []types.UID { return r.Owners(ns, name) }
	r.SetOwner("pod1", refs.In(ns, "a"))
	r.SetOwner("pod1", refs.In(ns, "a", "a"))
	require.Equal(t, []types.UID{"pod1"}, owners("a"))
	r.SetOwner("pod2", nil)
	r.SetOwner("pod2", refs.In("other", "a"))
	require.Equal(t, []types.UID{"pod1"}, owners("a"), "names of other owners and namespaces have no part in it")
	r.AddNames("pod2", refs.In(ns, "a", "", "b"))
	require.Equal(t, []types.UID{"pod1", "pod2"}, owners("a"))
	require.Equal(t, []types.UID{"pod2"}, r.Owners("other", "a"))
	r.SetOwner("pod1", refs.In(ns, "b"))
	require.Equal(t, []types.UID{"pod2"}, owners("a"))
	require.Equal(t, []types.UID{"pod1", "pod2"}, owners("b"))
	r.SetOwner("pod1", nil)
	r.SetOwner("pod1", nil)
	r.SetOwner("pod2", nil)
	for _, name := range []string{"a", "b", ""} {
		require.Empty(t, owners(name))
	}
}

// TestANewOwnerHasTheObjectReadAgain: an object that is registered after a change of its pod must
// not be older than that registration, however late the watch is.
func TestANewOwnerHasTheObjectReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("tls", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"))
		r.server.Mute() // the watch is open, and late
		r.put("tls", "2")
		synctest.Wait()
		r.SetOwner("pod", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"), "the same names are no new registration")
		r.SetOwner("pod2", refs.In(ns, "tls"))
		require.Equal(t, "2", r.value("tls"))
		require.Equal(t, 2, r.requests())
		require.Equal(t, "2", r.value("tls"))
		require.Equal(t, 2, r.requests(), "one new owner costs one request")
	})
}

// TestImmutableObjectsAreReadOnce is the kubelet's table of five: an object that is immutable, or
// becomes it, is not followed any more.
func TestImmutableObjectsAreReadOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*rig)
		followed      bool
	}{
		"created mutable":       {nil, func(r *rig) { r.put("tls", "2") }, true},
		"created immutable":     {nil, func(r *rig) { r.putImmutable("tls", "2") }, false},
		"mutable to mutable":    {func(r *rig) { r.put("tls", "1") }, func(r *rig) { r.put("tls", "2") }, true},
		"mutable to immutable":  {func(r *rig) { r.put("tls", "1") }, func(r *rig) { r.putImmutable("tls", "2") }, false},
		"immutable at the read": {func(r *rig) { r.putImmutable("tls", "2") }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				if c.before != nil {
					c.before(r)
				}
				r.SetOwner("pod", refs.In(ns, "tls"))
				_, err := r.Get(t.Context(), ns, "tls")
				require.Equal(t, c.before == nil, apierrors.IsNotFound(err))
				if c.after != nil {
					r.server.Server().AwaitWatches(1)
					c.after(r)
					synctest.Wait()
				}
				require.Equal(t, "2", r.value("tls"))
				if c.followed {
					r.server.Server().AwaitWatches(1)
				} else {
					r.server.Server().AwaitWatches(0)
				}
				require.Equal(t, 1, r.requests())
				time.Sleep(time.Hour)
				require.Equal(t, "2", r.value("tls"))
				require.Equal(t, c.followed, r.requests() > 1, "an immutable object is not read again")
			})
		})
	}
}

// TestAnImmutableObjectIsReadAgainForANewOwner: the kubelet gives a new pod the object that was
// deleted and created again long ago, as long as an old pod has the name.
func TestAnImmutableObjectIsReadAgainForANewOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.putImmutable("tls", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"))
		r.remove("tls")
		r.putImmutable("tls", "2")
		require.Equal(t, "1", r.value("tls"))
		r.SetOwner("pod2", refs.In(ns, "tls"))
		require.Equal(t, "2", r.value("tls"))
	})
}

// TestIdleWatchesEnd: nobody reads the object, so its watch ends; the next Get reads it again.
func TestIdleWatchesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithIdle(time.Minute))
		r.put("tls", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"))
		time.Sleep(90 * time.Second)
		r.server.Server().AwaitWatches(0)
		r.put("tls", "2")
		require.Equal(t, "2", r.value("tls"))
		require.Equal(t, 2, r.requests())
		for range 6 {
			time.Sleep(20 * time.Second)
			require.Equal(t, "2", r.value("tls"))
		}
		require.Equal(t, 2, r.requests(), "a watch whose object is read does not end")
	})
}

// TestASlowServerIsWaitedFor: a name whose first state is late is not idle, and its request is not
// given up while others wait for it.
func TestASlowServerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithIdle(time.Minute))
		r.put("tls", "1")
		r.server.NoWatchList(listwatchtest.UntilLifted())
		r.server.Delay(80 * time.Second)
		began := time.Now()
		r.SetOwner("pod", refs.In(ns, "tls"))
		_, err := r.Get(within(t, time.Second), ns, "tls")
		var why *refs.Error
		require.ErrorAs(t, err, &why)
		require.Equal(t, reflector.OK, why.Class)
		require.Zero(t, why.Since)
		require.Contains(t, err.Error(), "not read yet")
		require.Equal(t, "1", r.value("tls"))
		require.Less(t, time.Since(began), 90*time.Second)
	})
}

// TestErrorsNameClassAndCause has what Get says for each answer of a server.
func TestErrorsNameClassAndCause(t *testing.T) {
	why := func(t *testing.T, err error) *refs.Error {
		var e *refs.Error
		require.ErrorAs(t, err, &e)
		return e
	}
	t.Run("not found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.SetOwner("pod", refs.In(ns, "tls"))
			obj, err := r.Get(t.Context(), ns, "tls")
			require.Nil(t, obj)
			require.True(t, apierrors.IsNotFound(err))
			require.Equal(t, reflector.NotFound, why(t, err).Class)
			require.Equal(t, `refs: shop/tls: not_found: Secret "tls" not found`, err.Error())
			r.put("tls", "1")
			synctest.Wait()
			require.Equal(t, "1", r.value("tls"), "a name is followed before its object exists")
		})
	})
	t.Run("forbidden", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.put("tls", "1")
			forbidden := r.server.Fail(listwatchtest.Watch, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "tls",
				errors.New("no rights")), listwatchtest.UntilLifted())
			r.SetOwner("pod", refs.In(ns, "tls"))
			began := time.Now()
			_, err := r.Get(t.Context(), ns, "tls")
			require.True(t, apierrors.IsForbidden(err))
			require.Equal(t, reflector.Forbidden, why(t, err).Class)
			require.Zero(t, why(t, err).Since)
			require.Zero(t, time.Since(began), "a refusal is not waited for")
			forbidden.Lift()
			time.Sleep(2 * time.Second)
			require.Equal(t, "1", r.value("tls"), "the next Get asks again")
		})
	})
	t.Run("not read yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.server.Fail(listwatchtest.List, apierrors.NewInternalError(errors.New("etcd is gone")), listwatchtest.UntilLifted())
			r.SetOwner("pod", refs.In(ns, "tls"))
			_, err := r.Get(within(t, time.Minute), ns, "tls")
			require.Equal(t, reflector.ServerError, why(t, err).Class)
			require.True(t, apierrors.IsInternalError(err))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "refs: shop/tls: not read yet: server_error: ")
			require.ErrorContains(t, err, "etcd is gone")
		})
	})
	t.Run("stale since", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.put("tls", "1")
			r.SetOwner("pod", refs.In(ns, "tls"))
			require.Equal(t, "1", r.value("tls"))
			last := time.Now()
			time.Sleep(10 * time.Second)
			refused := r.server.Fail(listwatchtest.Watch, apierrors.NewInternalError(errors.New("etcd is gone")), listwatchtest.UntilLifted())
			r.server.Disconnect()
			refused.Wait()
			synctest.Wait()
			obj, err := r.Get(t.Context(), ns, "tls")
			require.Equal(t, "1", string(obj.Data["value"]), "the last known state")
			require.Equal(t, reflector.ServerError, why(t, err).Class)
			require.Equal(t, last, why(t, err).Since)
			require.True(t, apierrors.IsInternalError(err))
			require.Contains(t, err.Error(), "refs: shop/tls: stale since 00:00:00: server_error: watch secrets in shop: Internal error")
			refused.Lift()
			time.Sleep(time.Minute)
			require.Equal(t, "1", r.value("tls"))
		})
	})
	t.Run("not run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newQuietRig(t)
			r.SetOwner("pod", refs.In(ns, "tls"))
			_, err := r.Get(within(t, time.Second), ns, "tls")
			require.Contains(t, err.Error(), "nobody has called Run")
			r.put("tls", "1")
			r.run()
			require.Equal(t, "1", r.value("tls"))
			r.stop()
			_, err = r.Get(t.Context(), ns, "tls")
			require.ErrorIs(t, err, refs.ErrStopped)
			require.ErrorIs(t, r.Ready(time.Hour), refs.ErrStopped, "nobody follows it")
			require.ErrorContains(t, r.Run(t.Context()), "twice")
		})
	})
}

// TestBadOptionsAreToldToReaders: Get and Ready have the error with which Run has ended.
func TestBadOptionsAreToldToReaders(t *testing.T) {
	r := newQuietRig(t, refs.WithIdle(-1))
	require.ErrorContains(t, r.Ready(time.Hour), "nobody has called Run")
	r.SetOwner("pod", refs.In(ns, "tls"))
	require.ErrorContains(t, r.Run(t.Context()), "WithIdle(-1ns)")
	_, err := r.Get(t.Context(), ns, "tls")
	for _, err := range []error{err, r.Ready(time.Hour)} {
		require.ErrorIs(t, err, refs.ErrStopped)
		require.ErrorContains(t, err, "WithIdle(-1ns)")
	}
}

// TestAnAnswerWithAnotherObjectIsAnError: a source that does not select by name shows nothing that
// nothing refers to.
func TestAnAnswerWithAnotherObjectIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuietRig(t)
		client, err := listwatch.NewRESTClient(r.server.Server().Config(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		everything := listwatch.Fields(fields.OneTermEqualSelector("metadata.namespace", ns))
		r.Refs = refs.New(refs.FromClient[corev1.Secret](client, "secrets", everything))
		r.run()
		r.put("other", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		obj, err := r.Get(within(t, time.Minute), ns, "tls")
		require.Nil(t, obj)
		require.ErrorContains(t, err, "it must obey the field selector metadata.name")
	})
}

// TestAForbiddenNameIsLogged as an error, once for all names, and again when none is refused.
func TestAForbiddenNameIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		r := newRig(t, refs.WithIdle(0), refs.WithLogger(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})))
		rights := r.server.Fail(listwatchtest.Watch, forbidden, listwatchtest.UntilLifted())
		r.SetOwner("pod", someNames(20))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, lines, 1)
		require.Regexp(t, `"msg"="A name is failing" "error"=.*by order.* "class"="forbidden" "name"=.*"n\d+"`, lines[0])
		rights.Lift()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, lines, 2)
		require.Regexp(t, `"No name is failing any more" .*"class"="forbidden"`, lines[1])
	})
}
