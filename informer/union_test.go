package informer_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

type (
	podUnion  = informer.Union[*corev1.Pod]
	podSource = listwatch.ListerWatcher[*corev1.Pod]
)

// refusable is a source that a test can refuse, as RBAC does, or hold up.
type refusable struct {
	podSource

	mu      sync.Mutex
	refused bool
	cut     context.CancelFunc // ends the watch in flight
	held    chan struct{}      // while open, watches send nothing more
}

func (r *refusable) refuse(refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = refused
	if refused && r.cut != nil {
		r.cut()
	}
}

// holdUp makes the watch send nothing until goOn is called.
func (r *refusable) holdUp() (goOn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(chan struct{})
	r.held = held
	return func() { close(held) }
}

func (r *refusable) check(cut context.CancelFunc) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	}
	if cut != nil { // a probe's List leaves the watch's
		r.cut = cut
	}
	return nil
}

func (r *refusable) List(ctx context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	list := r.podSource.List(ctx, o)
	items := list.Items
	list.Items = func(yield func(*corev1.Pod, error) bool) {
		if err := r.check(nil); err != nil {
			yield(nil, err)
			return
		}
		items(yield)
	}
	return list
}

func (r *refusable) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := r.check(cancel); err != nil {
			yield(listwatch.Event[*corev1.Pod]{}, err)
			return
		}
		for event, err := range r.podSource.Watch(ctx, o) {
			r.mu.Lock()
			held := r.held
			r.mu.Unlock()
			if held != nil {
				select {
				case <-held:
				case <-ctx.Done():
				}
			}
			if ctx.Err() != nil && err == nil {
				err = ctx.Err()
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

func inNamespace(pods *fakePods, namespace string) *refusable {
	return &refusable{podSource: pods.ListerWatcher(listwatch.InNamespace(namespace))}
}

func labelled(pods *fakePods, selector string) *refusable {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return &refusable{podSource: pods.ListerWatcher(listwatch.Labels(parsed))}
}

func join(t *testing.T, u *podUnion, name string, source podSource) *informer.Member[*corev1.Pod] {
	t.Helper()
	m, err := u.Add(name, source)
	require.NoError(t, err)
	return m
}

func keysOf(s store.Snapshot[*corev1.Pod]) (keys []string) {
	for _, pod := range s.Sorted() {
		keys = append(keys, store.KeyOf(pod))
	}
	return keys
}

func TestUnionOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		createPod(pods, "a", "x")
		createPod(pods, "b", "x")
		createPod(pods, "c", "x")
		byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
		u := informer.NewUnion[*corev1.Pod](informer.WithIndexes(byName))
		a := join(t, u, "a", inNamespace(pods, "a"))
		join(t, u, "b", inNamespace(pods, "b"))
		var r recorder
		add(t, u, r.handle)
		stop := start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		<-u.Synced()
		require.ElementsMatch(t, []string{"added a/x >2 initial", "added b/x >3 initial"}, r.take())
		require.Equal(t, 2, byName.Len(u.Snapshot(), "x"))

		c := join(t, u, "c", inNamespace(pods, "c"))
		require.NoError(t, c.WaitSynced(t.Context()))
		require.Equal(t, []string{"added c/x >4"}, r.take(), "a member that joins")
		createPod(pods, "c", "y")
		require.Equal(t, []string{"added c/y >5"}, r.take())

		all := join(t, u, "all", pods.ListerWatcher())
		require.NoError(t, u.WaitSynced(t.Context()))
		require.Empty(t, r.take(), "what another member has is there once")
		a.Remove()
		a.Remove()
		require.Empty(t, r.take(), "and stays as long as one has it")
		require.Equal(t, []string{"a/x", "b/x", "c/x", "c/y"}, keysOf(u.Snapshot()))
		all.Remove()
		require.Equal(t, []string{"deleted a/x 2>"}, r.take(), "its last state")
		require.Equal(t, []string{"b/x", "c/x", "c/y"}, keysOf(u.Snapshot()))
		pods.Server().AwaitWatches(2)

		members := u.Members()
		require.Len(t, members, 2)
		require.Equal(t, "c", members[1].Name)
		require.Equal(t, 2, members[1].Objects)
		require.Equal(t, reflector.Watching, members[1].Phase)
		status := u.Status()
		require.Equal(t, 3, status.Objects)
		require.True(t, status.Synced)
		require.Equal(t, 2, status.Watches)
		require.NoError(t, u.Ready(time.Minute))

		require.NoError(t, stop())
		c.Remove()
		require.Equal(t, []string{"b/x"}, keysOf(u.Snapshot()))
		_, err := u.Add("a", pods.ListerWatcher())
		require.ErrorIs(t, err, informer.ErrStopped)
	})
}

// TestRefusedMember: a member's refusal shows with its name, and delays no other member. Once it is
// permitted, its objects are added.
func TestRefusedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		createPod(pods, "a", "x")
		createPod(pods, "b", "x")
		u := informer.NewUnion[*corev1.Pod]()
		join(t, u, "a", inNamespace(pods, "a"))
		refused := inNamespace(pods, "b")
		refused.refuse(true)
		b := join(t, u, "b", refused)
		var r recorder
		h := add(t, u, r.handle)
		start(t, u)
		require.NoError(t, h.WaitSynced(t.Context()))
		require.Equal(t, []string{"added a/x >2 initial"}, r.take())
		written := createPod(pods, "a", "y")
		require.NoError(t, u.WaitFor(t.Context(), written), "the object is there, whatever others have")
		require.Equal(t, []string{"added a/y >4"}, r.take())

		members := u.Members()
		require.NoError(t, members[0].Err)
		require.Equal(t, reflector.Forbidden, members[1].Class)
		status := u.Status()
		require.False(t, status.Synced)
		require.Equal(t, reflector.Forbidden, status.Class)
		require.ErrorContains(t, status.Err, `member "b": `)
		require.ErrorContains(t, u.Ready(time.Minute), `member "b": not synced yet (forbidden`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, u.WaitSynced(ctx), `member "b": reflector: not synced`)
		require.True(t, apierrors.IsForbidden(u.WaitSynced(ctx)))
		require.ErrorContains(t, u.WaitForResourceVersion(ctx, written.ResourceVersion), `member "b" is at version ""`)
		pods.Remove(written)
		require.ErrorContains(t, u.WaitForDeletion(ctx, written), `member "b" is at version ""`, "it might have the object")

		refused.refuse(false)
		require.NoError(t, u.WaitSynced(t.Context()))
		require.NoError(t, u.WaitForDeletion(t.Context(), written))
		require.Equal(t, []string{"deleted a/y 5>", "added b/x >3"}, r.take())

		refused.refuse(true)
		createPod(pods, "a", "z")
		synctest.Wait()
		require.Len(t, r.take(), 1)
		require.Equal(t, []string{"a/x", "a/z", "b/x"}, keysOf(u.Snapshot()), "the last state is kept")
		b.Remove()
		require.Equal(t, []string{"deleted b/x 3>"}, r.take())
		require.NoError(t, u.Ready(time.Minute))
		require.NoError(t, u.WaitForResourceVersion(t.Context(), written.ResourceVersion))
	})
}

// TestSlowMemberBringsNothingBack: after one member has reported a deletion, a late member does not
// add the object again, nor an older state of it.
func TestSlowMemberBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		u := informer.NewUnion[*corev1.Pod]()
		quick := &refusable{podSource: pods.ListerWatcher()}
		join(t, u, "quick", quick)
		slow := inNamespace(pods, "ns")
		join(t, u, "slow", slow)
		var r recorder
		add(t, u, r.handle)
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		require.Empty(t, r.take())

		goOn := slow.holdUp()
		a := createPod(pods, "ns", "a")
		b := createPod(pods, "ns", "b")
		b = b.DeepCopy()
		b.Labels = map[string]string{"app": "web"}
		pods.Update(b)
		pods.Remove(a)
		require.Equal(t, []string{"added ns/a >2", "added ns/b >3", "updated ns/b 3>4", "deleted ns/a 5>"}, r.take())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, u.WaitForResourceVersion(ctx, "5"), `member "slow" is at version`)
		goOn()
		require.NoError(t, u.WaitForResourceVersion(t.Context(), "5"))
		require.Empty(t, r.take())
		require.Equal(t, []string{"ns/b"}, keysOf(u.Snapshot()))

		goOn = slow.holdUp() // it holds b, and is not told of its deletion
		pods.Remove(b)
		createPod(pods, "ns", "b")
		require.Equal(t, []string{"deleted ns/b 4> missed", "added ns/b >7"}, r.take(),
			"the slow member may have had it, until it was seen to be another one")
		goOn()
		synctest.Wait()
		require.Empty(t, r.take())

		goOn = slow.holdUp()
		c := createPod(pods, "ns", "c")
		require.Equal(t, []string{"added ns/c >8"}, r.take())
		quick.refuse(true)
		pods.Remove(c)
		pods.Expire()
		quick.refuse(false)
		time.Sleep(time.Minute) // simulated time: a list shows the deletion
		require.Equal(t, []string{"deleted ns/c 8> missed"}, r.take())
		goOn()
		require.Empty(t, r.take(), "the slow member tells that very state")
	})
}

// TestObjectMovesBetweenMembers: an object leaves one member and joins another, in whichever order
// the two are told.
func TestObjectMovesBetweenMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		u := informer.NewUnion[*corev1.Pod]()
		from, to := labelled(pods, "at=from"), labelled(pods, "at=to")
		join(t, u, "from", from)
		join(t, u, "to", to)
		var r recorder
		add(t, u, r.handle)
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"at": "from"}}}
		for _, slow := range []*refusable{from, to} {
			pod.Labels["at"] = "from"
			pod.ResourceVersion = ""
			created := pods.Create(pod).DeepCopy()
			require.Len(t, r.take(), 1)
			goOn := slow.holdUp()
			created.Labels["at"] = "to"
			pods.Update(created)
			first := r.take()
			goOn()
			second := r.take()
			if slow == from {
				require.Equal(t, []string{"updated ns/a 2>3"}, first)
				require.Empty(t, second)
			} else {
				require.Equal(t, []string{"deleted ns/a 6>"}, first)
				require.Equal(t, []string{"added ns/a >6"}, second)
			}
			pods.Remove(created)
			require.Len(t, r.take(), 1)
			require.Zero(t, u.Snapshot().Len())
		}
	})
}

func TestUnionsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		u := informer.NewUnion[*corev1.Pod]()
		_, err := u.Add("none", nil)
		require.ErrorContains(t, err, `add member "none": the source is nil`)
		early := join(t, u, "a", pods.ListerWatcher())
		_, err = u.Add("a", pods.ListerWatcher())
		require.ErrorContains(t, err, `"a"`)
		require.ErrorContains(t, err, "has a member of that name")
		early.Remove() // removed before Run
		require.ErrorContains(t, early.WaitSynced(t.Context()), "it was removed")
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()), "no members, nothing to wait for")
		again := join(t, u, "a", pods.ListerWatcher())
		require.NoError(t, again.WaitSynced(t.Context()))
		for want, option := range map[string]informer.Option{
			"WithRing(0)":      informer.WithRing(0),
			"WithLiveness(0s)": informer.WithReflector(reflector.WithLiveness(0)),
		} {
			require.ErrorContains(t, informer.NewUnion[*corev1.Pod](option).Run(t.Context()), want)
		}
	})
}

// TestNoMethodExistsToFail: a lease is run by its set.
func TestNoMethodExistsToFail(t *testing.T) {
	_, runs := any((*informer.Lease[*corev1.Pod])(nil)).(interface{ Run(context.Context) error })
	require.False(t, runs)
}

// TestWaitForOneMember: the wait for a member's object is not one for the others, and ends with the
// member.
func TestWaitForOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t)
		u := informer.NewUnion[*corev1.Pod]()
		a := join(t, u, "a", inNamespace(pods, "a"))
		slow := inNamespace(pods, "b")
		b := join(t, u, "b", slow)
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		goOn := slow.holdUp()
		x, y := createPod(pods, "a", "x"), createPod(pods, "b", "y")
		pods.Remove(x)
		require.NoError(t, a.WaitFor(t.Context(), x), "its deletion is a later state")
		require.NoError(t, a.WaitForDeletion(t.Context(), x))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, u.WaitForDeletion(ctx, x), `member "b" is at version`)
		require.ErrorContains(t, b.WaitFor(ctx, y), `member "b" is at version`)
		goOn()
		require.NoError(t, b.WaitFor(t.Context(), y))
		later := y.DeepCopy()
		later.ResourceVersion = "99"
		time.AfterFunc(time.Second, b.Remove)
		require.ErrorIs(t, b.WaitFor(t.Context(), later), informer.ErrStopped)
	})
}

// TestNothingOldComesBackAfterAMember: the first member has told an object's newest state, and is
// removed. So is the second, which lags behind. A third that lags further catches up: the states
// before the newest one are not told again.
func TestNothingOldComesBackAfterAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		u := informer.NewUnion[*corev1.Pod]()
		var r recorder
		add(t, u, r.handle)
		second, third := &refusable{podSource: s}, &refusable{podSource: s}
		ahead, behind := join(t, u, "first", s), join(t, u, "second", second)
		join(t, u, "third", third)
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		catchUp := third.holdUp()
		s.put("b")
		synctest.Wait()
		defer second.holdUp()()
		s.put("b")
		s.put("b")
		require.Equal(t, []string{"added ns/a >1 initial", "added ns/b >2", "updated ns/b 2>3", "updated ns/b 3>4"}, r.take())
		ahead.Remove()
		require.Empty(t, r.take())
		behind.Remove()
		require.Equal(t, []string{"deleted ns/b 4>"}, r.take())
		catchUp()
		require.Equal(t, []string{"added ns/b >4"}, r.take())
	})
}
