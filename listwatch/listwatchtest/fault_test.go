package listwatchtest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

var (
	latest      = metav1.ListOptions{}
	podResource = schema.GroupResource{Resource: "pods"}
)

func after(p metav1.Object) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: p.GetResourceVersion()}
}

func TestDisconnectCutsWhatIsUnderWay(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		a := d.pods.Create(pod("a"))
		one, two := d.follow(t, after(a)), d.follow(t, after(a))
		d.pods.Server().AwaitWatches(2)
		fault := d.pods.Disconnect()
		require.ErrorIs(t, one.end(t), io.ErrUnexpectedEOF)
		require.ErrorIs(t, two.end(t), io.ErrUnexpectedEOF)
		require.Equal(t, 1, fault.Struck(), "all at once count as once")

		three := d.follow(t, after(a))
		d.pods.Create(pod("b"))
		three.require(t, "ADDED b@3")
	})
}

func TestDisconnectMeetsTheNextRequestWhereNothingIsUnderWay(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		d.pods.Create(pod("a"))
		fault := d.pods.Disconnect(listwatchtest.Times(2))
		_, _, err := d.names(t.Context(), latest)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorIs(t, d.follow(t, latest).end(t), io.ErrUnexpectedEOF)
		fault.Wait()
		names, _, err := d.names(t.Context(), latest)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
		require.Equal(t, 2, fault.Struck())
		require.Len(t, d.pods.Server().Requests(listwatchtest.List), 2, "nobody retries unseen")
	})
}

func TestMutedConnectionBringsNothingUntilItIsGivenUp(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		a := d.pods.Create(pod("a"))
		muted := d.follow(t, after(a))
		d.pods.Server().AwaitWatches(1)
		d.pods.Mute()
		d.pods.Server().AwaitWatches(0)
		d.pods.Create(pod("b"))
		well := d.follow(t, after(a))
		well.require(t, "ADDED b@3")
		select {
		case line := <-muted.lines:
			require.FailNow(t, "a muted watch brought an event", line)
		case err := <-muted.ended:
			require.FailNow(t, "a muted watch ended", "%v", err)
		default:
		}
		muted.cancel()
		require.Error(t, muted.end(t))
	})
}

func TestMutedRequestIsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		fault := pods.Mute(listwatchtest.On(listwatchtest.Watch))
		d := door{pods, pods.ListerWatcher()}
		f := d.follow(t, latest)
		fault.Wait()
		time.Sleep(24 * time.Hour) // simulated time
		require.Empty(t, f.ended)
	})
}

func TestExpireEndsWatchesAndForgetsThePast(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		a := d.pods.Create(pod("a"))
		d.pods.Create(pod("b"))
		page := metav1.ListOptions{Limit: 1}
		_, meta, err := d.names(t.Context(), page)
		require.NoError(t, err)
		f := d.follow(t, metav1.ListOptions{ResourceVersion: "3"})
		d.pods.Server().AwaitWatches(1)

		fault := d.pods.Expire()
		fault.Wait()
		require.True(t, apierrors.IsResourceExpired(f.end(t)))
		require.True(t, apierrors.IsResourceExpired(d.follow(t, after(a)).end(t)))
		require.True(t, apierrors.IsResourceExpired(d.follow(t, metav1.ListOptions{ResourceVersion: "3"}).end(t)))
		page.Continue = meta.Continue
		_, _, err = d.names(t.Context(), page)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)

		names, _, err := d.names(t.Context(), latest)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, names)
		require.Equal(t, 1, fault.Struck())
	})
}

func TestExpireTimesMakesFreshVersionsTooOld(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		fault := d.pods.Expire(listwatchtest.Times(2))
		for _, name := range []string{"a", "b"} {
			a := d.pods.Create(pod(name))
			require.True(t, apierrors.IsResourceExpired(d.follow(t, after(a)).end(t)))
		}
		fault.Wait()
		last := d.pods.Create(pod("c"))
		f := d.follow(t, after(last))
		d.pods.Remove(last)
		f.require(t, "DELETED c@8")
	})
}

func TestFailAnswersWithTheError(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		forbidden := apierrors.NewForbidden(podResource, "", errors.New("by order of a test"))
		fault := d.pods.Fail(listwatchtest.List, forbidden, listwatchtest.UntilLifted())
		for range 3 {
			_, _, err := d.names(t.Context(), latest)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
		}
		require.Equal(t, 3, fault.Struck())
		fault.Lift()
		_, _, err := d.names(t.Context(), latest)
		require.NoError(t, err)

		d.pods.Fail(listwatchtest.Watch, errors.New("some trouble"))
		err = d.follow(t, latest).end(t)
		require.True(t, apierrors.IsInternalError(err), "%v", err)
		require.ErrorContains(t, err, "some trouble")
	})
}

// TestFailListStrikesAReflector, which lists by a watch.
func TestFailListStrikesAReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		fault := pods.Fail(listwatchtest.List, apierrors.NewForbidden(podResource, "", errors.New("by order of a test")), listwatchtest.UntilLifted())
		r := reflector.New(pods.ListerWatcher(), store.NewIndexer[*corev1.Pod]())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		fault.Wait()
		synctest.Wait()
		require.False(t, r.Status().Synced)
		require.Equal(t, reflector.Forbidden, r.Status().Class)
		fault.Lift()
		require.NoError(t, r.WaitSynced(ctx))
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestThrottleSaysWhenToComeBack(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		d.pods.Throttle(1500 * time.Millisecond)
		_, _, err := d.names(t.Context(), latest)
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		seconds, ok := apierrors.SuggestsClientDelay(err)
		require.True(t, ok)
		require.Equal(t, 2, seconds)
	})
}

func TestTruncateCutsInTheMiddle(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		a := d.pods.Create(pod("a"))
		d.pods.Truncate()
		_, _, err := d.names(t.Context(), latest)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)

		f := d.follow(t, after(a))
		d.pods.Server().AwaitWatches(1)
		d.pods.Create(pod("b"))
		f.require(t, "ADDED b@3")
		fault := d.pods.Truncate()
		d.pods.Create(pod("c"))
		fault.Wait()
		require.ErrorIs(t, f.end(t), io.ErrUnexpectedEOF)
	})
}

func TestDelayHoldsAnswersAndEventsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		d := door{pods, pods.ListerWatcher()}
		a := pods.Create(pod("a"))
		pods.Delay(5 * time.Second)
		began := time.Now()
		_, _, err := d.names(t.Context(), latest)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))

		f := d.follow(t, after(a))
		pods.Server().AwaitWatches(1)
		fault := pods.Delay(time.Minute)
		began = time.Now()
		pods.Create(pod("b"))
		pods.Create(pod("c"))
		f.require(t, "ADDED b@3", "ADDED c@4")
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 1, fault.Struck())
	})
}

// TestAnswerInTheMomentOfGivingUp: the request ends, whether the answer or the client's giving up
// comes first.
func TestAnswerInTheMomentOfGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		d := door{pods, pods.ListerWatcher()}
		for range 100 {
			pods.Delay(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _, _ = d.names(ctx, latest)
			cancel()
		}
	})
}

func TestStaleServesThePast(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		d.pods.Create(pod("a"))
		fault := d.pods.Stale(listwatchtest.UntilLifted())
		b := d.pods.Create(pod("b"))

		names, meta, err := d.names(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
		require.Equal(t, "2", meta.ResourceVersion)
		_, _, err = d.names(t.Context(), after(b))
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
		names, _, err = d.names(t.Context(), latest)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, names, "the latest state is the latest")

		f := d.follow(t, after(b))
		d.pods.Server().AwaitWatches(1)
		c := d.pods.Create(pod("c"))
		require.Empty(t, f.lines)
		fault.Lift()
		require.NoError(t, f.end(t), "a server that ends its watches does so in order")
		names, _, err = d.names(t.Context(), after(c))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, names)
	})
}

func TestNoWatchListIsRefusedAsByAnOldServer(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		d.pods.Create(pod("a"))
		fault := d.pods.NoWatchList(listwatchtest.UntilLifted())
		a := d.agent(t)
		require.Equal(t, []string{"a"}, a.names())
		require.Equal(t, 1, fault.Struck(), "once is enough for it to know")
		lists := d.pods.Server().Requests(listwatchtest.List)
		require.Len(t, lists, 1)
		require.Equal(t, "list pods limit=500", lists[0].String(), "the newest state, in pages")
	})
}

// An agent recovers from every fault, and then holds the collection.
func TestReflectorOutlivesEveryFault(t *testing.T) {
	type pods = listwatchtest.Collection[*corev1.Pod]
	faults := map[string]struct {
		make  func(*pods) *listwatchtest.Fault
		class reflector.Class // of the list that followed; empty if none did
	}{
		"disconnect": {make: func(p *pods) *listwatchtest.Fault { return p.Disconnect() }},
		"expire":     {make: func(p *pods) *listwatchtest.Fault { return p.Expire() }, class: reflector.Expired},
		"mute":       {make: func(p *pods) *listwatchtest.Fault { return p.Mute() }},
		"truncate":   {make: func(p *pods) *listwatchtest.Fault { return p.Truncate() }},
		"delay":      {make: func(p *pods) *listwatchtest.Fault { return p.Delay(time.Minute) }},
		"throttle": {make: func(p *pods) *listwatchtest.Fault {
			f := p.Throttle(10*time.Second, listwatchtest.Times(3))
			p.Disconnect()
			return f
		}},
		"fail": {make: func(p *pods) *listwatchtest.Fault {
			f := p.Fail(listwatchtest.Watch, apierrors.NewServiceUnavailable("by order of a test"), listwatchtest.Times(3))
			p.Disconnect()
			return f
		}},
	}
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				collection := listwatchtest.New(t, listwatchtest.Pods())
				d := door{collection, collection.ListerWatcher()}
				collection.Create(pod("a"))
				a := d.agent(t)
				fault := c.make(collection)
				collection.Create(pod("b"))
				fault.Wait()
				time.Sleep(10 * time.Minute) // simulated time
				synctest.Wait()
				require.Equal(t, []string{"a", "b"}, a.names())
				require.NoError(t, a.Status().Err)
				if c.class == "" {
					require.Len(t, a.Status().Lists, 1, "nothing but the first list")
				} else {
					require.Equal(t, 1, a.Status().Lists[c.class])
				}
			})
		})
	}
}
