package reflector_test

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestUnusableObjectsMakeACopyNotRight: one object in twenty may be unusable, not more.
func TestUnusableObjectsMakeACopyNotRight(t *testing.T) {
	for bad, right := range map[int]bool{0: true, 1: true, 2: true, 3: false, 40: false} {
		synctest.Test(t, func(t *testing.T) {
			pods := podsOf("a", "300", 40)
			for i := range bad {
				pods[i] = &corev1.Pod{}
			}
			r, _ := follow(t, newCluster("500", pods...))
			synctest.Wait()
			err := r.Ready(time.Minute)
			require.Equal(t, right, err == nil, "%d bad: %v", bad, err)
			require.Equal(t, bad, r.Status().Unusable)
			if !right {
				require.ErrorContains(t, err, fmt.Sprintf("%d objects cannot be used, of 40 in the newest list", bad))
			}
		})
	}
}

// TestAWriteIntoTheCacheIsDrift: a program writes into objects that it read, against the rule. A
// probe decodes its object alone, so that it sees the write; the relist takes no object over, also
// of a collection of which a list compares a part.
func TestAWriteIntoTheCacheIsDrift(t *testing.T) {
	if race.Enabled {
		t.Skip("its writes are a race, on purpose")
	}
	for _, count := range []int{40, 1500} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := listwatchtest.New(t, listwatchtest.Of[*corev1.Pod]())
				for i := range count {
					server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Namespace: "shop", Name: fmt.Sprintf("web-%04d", i), Labels: map[string]string{"app": "web"},
					}})
				}
				client, err := listwatch.NewRESTClient(server.Server().Config(), corev1.SchemeGroupVersion)
				require.NoError(t, err)
				r, pods := follow(t, listwatch.FromClient[corev1.Pod](client, "pods"))
				written := func() (n int) {
					for _, p := range pods.Snapshot().All() {
						if p.Labels["app"] != "web" {
							n++
						}
					}
					return n
				}
				for _, p := range pods.Snapshot().All() {
					p.Labels["app"] = "mine"
				}
				require.Equal(t, count, written())
				time.Sleep(2 * time.Minute) // of the simulated clock
				synctest.Wait()
				require.Positive(t, r.Status().Lists[reflector.Drift], "%v", r.Status())
				require.Zero(t, written())
				require.NoError(t, r.Ready(3*time.Minute))
			})
		})
	}
}

// TestABadObjectCostsItselfAlone: an object that cannot be decoded switches no comparison off.
func TestABadObjectCostsItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &corev1.Pod{} // without a name: the source cannot decode it
		source := newCluster("500", append(podsOf("a", "300", 46), bad)...)
		source.lookups = true
		r, pods := follow(t, source)
		require.Equal(t, 1, r.Status().Unusable)
		source.become("900", append(podsOf("b", "300", 46), bad)...)
		source.set(func(c *cluster) { c.bookmark = "900" })
		time.Sleep(20 * time.Second) // of the simulated clock
		require.Equal(t, reflector.History, r.Status().Verdict(0).Class, "%v", r.Status())
		time.Sleep(2 * time.Minute) // one relist a minute
		require.Equal(t, 1, r.Status().Lists[reflector.History], "%v", r.Status())
		require.Equal(t, "b0", uids(pods)[0])
		require.NoError(t, r.Ready(3*time.Minute), "the list has settled it, but for the bad object")
	})
}

// damaged reads pods of a server, of which those with the label "bad" cannot be decoded. The value
// is what can be read of them: their key, or nothing.
func damaged(source *listwatch.ListWatch[*corev1.Pod]) *listwatch.ListWatch[*corev1.Pod] {
	spoil := func(op, event string, p *corev1.Pod, err error) error {
		if err != nil || p == nil || p.Labels["bad"] == "" {
			return err
		}
		d := &listwatch.DecodeError{Op: op, Event: event, Err: errors.New("no pod")}
		if p.Labels["bad"] == "named" {
			d.Object = store.KeyOf(p)
		}
		return d
	}
	return listwatch.Intercept(source, func(_ metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
		items := list.Items
		list.Items = func(yield func(*corev1.Pod, error) bool) {
			for p, err := range items {
				if err = spoil("list", "", p, err); err != nil {
					p = nil
				}
				if !yield(p, err) {
					return
				}
			}
		}
		return list
	}, func(_ metav1.ListOptions, events iter.Seq2[listwatch.Event[*corev1.Pod], error]) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
		return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
			for event, err := range events {
				if err = spoil("watch", string(event.Type), event.Object, err); err != nil {
					event = listwatch.Event[*corev1.Pod]{}
				}
				if !yield(event, err) {
					return
				}
			}
		}
	})
}

// TestABadObjectIsOneHoweverOftenItIsWritten: objects count, and not their events. An object that
// is mended or deleted counts no more, and those that nobody can name are one.
func TestABadObjectIsOneHoweverOftenItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New(t, listwatchtest.Of[*corev1.Pod]())
		pod := func(name, bad string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"bad": bad}}}
		}
		for i := range 45 {
			server.Create(pod(fmt.Sprintf("good-%02d", i), ""))
		}
		server.Create(pod("first", ""))
		client, err := listwatch.NewRESTClient(server.Server().Config(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		r, _ := follow(t, damaged(listwatch.FromClient[corev1.Pod](client, "pods")))
		unusable := func() int {
			synctest.Wait()
			return r.Status().Unusable
		}
		for i := range 720 { // an hour
			spoilt := pod("first", []string{"named", "nameless"}[i/360])
			spoilt.Annotations = map[string]string{"written": strconv.Itoa(i)}
			server.Update(spoilt)
			time.Sleep(5 * time.Second)
			require.LessOrEqual(t, unusable(), 2, "one by its name, and one without")
			require.NoError(t, r.Ready(3*time.Minute))
		}
		server.Update(pod("first", "named"))
		server.Update(pod("good-00", "named"))
		server.Update(pod("good-01", "named"))
		require.GreaterOrEqual(t, unusable(), 3)
		require.Equal(t, reflector.Undecodable, r.Status().Verdict(0).Class)
		before := unusable()
		server.Update(pod("good-00", ""))
		require.Equal(t, before-1, unusable(), "it is mended")
		server.Delete(pod("good-01", "named"))
		require.Equal(t, before-2, unusable(), "it is gone")
		server.Update(pod("first", ""))
		time.Sleep(time.Hour) // until the next relist
		require.Zero(t, unusable())
		require.NoError(t, r.Ready(3*time.Minute))
	})
}
