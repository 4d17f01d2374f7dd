package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestAnotherClusterBehindTheAddress: the address leads to another cluster whose versions cover the
// copy's. Its watch brings nothing, and the probe's object contradicts the copy.
func TestAnotherClusterBehindTheAddress(t *testing.T) {
	for name, other := range map[string][]*corev1.Pod{
		"other pods":            podsOf("b", "300", 46),
		"pods of other names":   {{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "b", ResourceVersion: "7"}}},
		"the same, at versions": podsOf("a", "301", 46),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newCluster("500", podsOf("a", "300", 46)...)
				r, pods := follow(t, source)
				source.become("900", other...)
				time.Sleep(20 * time.Second) // of the simulated clock
				synctest.Wait()
				require.Equal(t, 1, r.Status().Lists[reflector.History], "%v", r.Status())
				require.Len(t, uids(pods), len(other))
				require.Equal(t, string(other[0].UID), uids(pods)[0])
				require.NoError(t, r.Ready(3*time.Minute))
			})
		})
	}
}

// TestARestoredClusterThatHasPassedTheCopy: the cluster was restored from a backup, and was written
// to until its version passed the copy's, before a watch came. The first object, and the number of
// objects, are the same; others differ, or are gone. Probes for objects held find that.
func TestARestoredClusterThatHasPassedTheCopy(t *testing.T) {
	before := podsOf("a", "300", 10)
	for name, after := range map[string][]*corev1.Pod{
		"others differ": slices.Concat(before[:1], podsOf("b", "280", 10)[1:]),
		"others gone":   before[:1],
	} {
		for _, bookmark := range []string{"", "600"} {
			t.Run(name+bookmark, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newCluster("500", before...)
					source.lookups = true
					r, pods := follow(t, source)
					source.set(func(c *cluster) { c.bookmark = bookmark })
					source.become("600", after...)
					time.Sleep(5 * time.Minute) // of the simulated clock
					require.Positive(t, r.Status().Lists[reflector.History]+r.Status().Lists[reflector.Drift]+r.Status().Lists[reflector.Silent], "%v", r.Status())
					require.Len(t, uids(pods), len(after))
					require.Equal(t, string(after[len(after)-1].UID), uids(pods)[len(after)-1])
					require.NoError(t, r.Ready(3*time.Minute))
				})
			})
		}
	}
}

// TestProbesForOneObjectThatAreRefused: a server that does not select by name is asked for its
// first object alone, and is not listed for that.
func TestProbesForOneObjectThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 10)...)
		source.lookups, source.noLookups = true, apierrors.NewBadRequest("field label not supported: metadata.name")
		r, _ := follow(t, source)
		time.Sleep(time.Hour)
		lists, probes := source.asked()
		require.Equal(t, 1, lists)
		require.InDelta(t, 63, probes, 5)
		require.NoError(t, r.Ready(2*time.Minute))
		require.NoError(t, r.Status().ProbeErr)
	})
}

// TestAContradictionIsNotRight: the copy is not right from the contradiction until the relist.
func TestAContradictionIsNotRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 3)...)
		r, _ := follow(t, source)
		r.Doubt(errors.New("a reason to list"))
		synctest.Wait()
		source.become("900", podsOf("b", "300", 3)...)
		time.Sleep(20 * time.Second) // one relist a minute for such doubts
		v := r.Status().Verdict(time.Hour)
		require.Equal(t, reflector.History, v.Class)
		require.ErrorContains(t, v.Err, "pod-00")
		require.ErrorContains(t, v.Err, "another cluster answers, or one that was restored")
		time.Sleep(time.Minute + 20*time.Second)
		require.NoError(t, r.Ready(3*time.Minute), "%v", r.Status())
	})
}

// TestToACloneAndBack: a cluster and its clone answer by turns, as both are behind one balancer.
// The version of either is one that the other has, too, so that no watch may go on from it.
func TestToACloneAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 3)...)
		r, pods := follow(t, source)
		time.Sleep(time.Second)
		source.set(func(c *cluster) { c.bookmark = "600" })
		source.become("600", podsOf("a", "300", 2)...)
		time.Sleep(90 * time.Second) // until it is found, and is proven
		require.Len(t, uids(pods), 2)
		require.NoError(t, r.Status().Err)
		source.become("700", podsOf("a", "300", 3)...)
		time.Sleep(time.Second)
		require.Len(t, uids(pods), 3, "listed at once: %v", r.Status())
		require.NoError(t, r.Status().Err)
	})
}

// TestHealthyOnceProven: after an outage the first sign of life comes while the rest of the changes
// is still on its way. The failure ends when a younger proof is reached, and Ready keeps its bound.
func TestHealthyOnceProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := podsOf("a", "300", 3)
		source := newCluster("500", before...)
		r, _ := follow(t, source)
		time.Sleep(time.Second)
		source.set(func(c *cluster) { c.bookmark = "700" })
		source.become("900", before...)
		time.Sleep(40 * time.Second)
		require.Equal(t, "700", r.Status().ResourceVersion, "the server is heard again")
		require.Equal(t, reflector.CatchingUp, r.Status().Class)
		require.NoError(t, r.Ready(3*time.Minute))
		source.set(func(c *cluster) { c.bookmark = "900" })
		time.Sleep(30 * time.Second)
		require.NoError(t, r.Status().Err)
	})
}

// TestListsThatStandInAreProven: a server answers each watch with 410, so that lists keep the copy.
func TestListsThatStandInAreProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 3)...)
		source.gone = true
		r, _ := follow(t, source)
		for range 60 {
			time.Sleep(time.Minute)
			require.NoError(t, r.Ready(3*time.Minute), "%v", r.Status())
		}
	})
}

// TestASweepFindsWhatOneObjectMayNot: a restored cluster has passed the copy. Of 250 objects one
// differs, and one is gone. That is found at once, and not by chance.
func TestASweepFindsWhatOneObjectMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := podsOf("a", "300", 250)
		source := newCluster("500", before...)
		source.lookups = true
		r, pods := follow(t, source)
		time.Sleep(time.Second)
		source.set(func(c *cluster) { c.bookmark = "600" })
		after := slices.Clone(before)
		after[187] = podsOf("b", "280", 188)[187]
		source.become("600", slices.Delete(after, 3, 4)...)
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, r.Status().Lists[reflector.History], "%v", r.Status())
		require.Len(t, uids(pods), 249)
	})
}

// TestAListWithoutAVersionRemovesNothing: an empty cache between client and server answers an empty
// list of version 0, or of none. A copy with content of a version takes no such list.
func TestAListWithoutAVersionRemovesNothing(t *testing.T) {
	for _, version := range []string{"", "0"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newCluster("500", podsOf("a", "300", 5)...)
				r, pods := follow(t, source)
				source.become(version) // before the doubt, whose list could else come first
				r.Doubt(errors.New("a reason to list"))
				time.Sleep(10 * time.Minute) // of the simulated clock
				require.Len(t, uids(pods), 5)
				require.Equal(t, reflector.WentBack, r.Status().Class)
				require.ErrorContains(t, r.Ready(3*time.Minute), "the list has no resource version")
				source.become("600", podsOf("a", "300", 4)...)
				time.Sleep(time.Minute)
				require.Len(t, uids(pods), 4)
				require.NoError(t, r.Ready(3*time.Minute))
			})
		})
	}
}

// TestFewerThanHalfWaitForASecondAnswer: at the version held, half of the objects are gone from one
// list, and are back in the next; or the second list agrees.
func TestFewerThanHalfWaitForASecondAnswer(t *testing.T) {
	for _, agrees := range []bool{false, true} {
		t.Run(fmt.Sprint(agrees), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newCluster("500", podsOf("a", "300", 10)...)
				r, pods := follow(t, source)
				least := 10
				source.set(func(c *cluster) { c.pods = c.pods[:4] })
				r.Doubt(errors.New("a reason to list"))
				for range 300 { // the second answer comes after a backoff
					synctest.Wait()
					lists := 0
					source.set(func(c *cluster) {
						if lists = c.lists; !agrees && lists == 2 {
							c.pods = podsOf("a", "300", 10)
						}
					})
					if lists == 2 {
						least = min(least, pods.Snapshot().Len())
						require.Error(t, r.Ready(time.Hour))
					}
					time.Sleep(10 * time.Millisecond)
				}
				require.Equal(t, 10, least, "nothing was removed for one answer")
				lists, _ := source.asked()
				require.Equal(t, 3, lists)
				require.Len(t, uids(pods), map[bool]int{false: 10, true: 4}[agrees])
				require.NoError(t, r.Ready(time.Minute))
			})
		})
	}
}

// TestASlowLinkIsNotFresh: the watch is alive and behind: bookmarks come, of versions that the
// server had long ago.
func TestASlowLinkIsNotFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("1000", podsOf("a", "300", 3)...)
		r, _ := follow(t, source, reflector.WithWatchTimeout(time.Hour))
		for minute := 1; minute <= 10; minute++ { // half as fast as the writes
			source.set(func(c *cluster) { c.version, c.bookmark = fmt.Sprint(1000+100*minute), fmt.Sprint(1000+50*minute) })
			time.Sleep(time.Minute)
		}
		s := r.Status()
		require.NoError(t, s.Err, "the stream is alive")
		require.Less(t, time.Since(s.LastContact), time.Minute)
		require.Equal(t, reflector.Stale, s.Verdict(3*time.Minute).Class)
		behind := time.Since(s.ProvenAt)
		require.True(t, 5*time.Minute <= behind && behind <= 7*time.Minute, "%s", behind)
		source.set(func(c *cluster) { c.bookmark = c.version })
		time.Sleep(time.Minute)
		require.NoError(t, r.Ready(2*time.Minute))
	})
}

// TestAnEndedRunIsNotReady: from that moment on, and with the error of Run.
func TestAnEndedRunIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reflector.New(newCluster("5"), store.NewIndexer[*corev1.Pod]())
		require.EqualError(t, r.Ready(time.Hour), "Run has not been called")
		require.Equal(t, reflector.NotRun, r.Status().Verdict(0).Class)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, r.Run(ctx))
		require.EqualError(t, r.Ready(time.Hour), "Run has ended")
		require.Equal(t, reflector.Stopped, r.Status().Phase)

		r = reflector.New(newCluster("5"), store.NewIndexer[*corev1.Pod](), reflector.WithLiveness(-1))
		failed := r.Run(t.Context())
		require.ErrorContains(t, failed, "WithLiveness")
		require.ErrorIs(t, r.Ready(time.Hour), failed)
		require.Equal(t, reflector.Ended, r.Status().Class)
	})
}

// TestCopiesOfOneResourceShareProbes: a hundred copies over one client ask as often as one, and
// each compares an object of its own now and then. A contradiction makes all ask for themselves.
func TestCopiesOfOneResourceShareProbes(t *testing.T) {
	requests := func(copies int, origin any) (probes int) {
		synctest.Test(t, func(t *testing.T) {
			var sources []*cluster
			for range copies {
				source := newCluster("500", podsOf("a", "300", 3)...)
				source.origin = origin
				sources = append(sources, source)
				r, _ := follow(t, source)
				defer func() { require.NoError(t, r.Ready(2*time.Minute)) }()
			}
			time.Sleep(time.Hour)
			for _, source := range sources {
				_, n := source.asked()
				probes += n
			}
		})
		return probes
	}
	alone := requests(1, "one")
	require.InDelta(t, 63, alone, 4, "one a minute")
	apart := requests(100, nil)
	require.InDelta(t, 100*alone, apart, 400)
	together := requests(100, "a hundred")
	require.Less(t, together, 600, "a probe a minute in all, and one each 15 minutes of each copy")
	t.Logf("requests an hour: 1 copy %d, 100 copies of one resource %d, of a hundred %d", alone, together, apart)
}

// TestOneCopyAsksForAllThatShare: its answer is that of the others at the same moment, so that they
// need not wake.
func TestOneCopyAsksForAllThatShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var copies []*reflector.Reflector[*corev1.Pod]
		for range 20 {
			source := newCluster("500", podsOf("a", "300", 3)...)
			source.origin = t
			r, _ := follow(t, source)
			copies = append(copies, r)
		}
		proven := func() (at []time.Time) {
			for _, r := range copies {
				at = append(at, r.Status().ProvenAt)
			}
			slices.SortFunc(at, time.Time.Compare)
			return slices.CompactFunc(at, time.Time.Equal)
		}
		for range 3 {
			before := proven()
			require.Len(t, before, 1)
			for len(proven()) == 1 && proven()[0].Equal(before[0]) {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
			}
		}
	})
}

// TestProbesThatAreForbidden: the probe is forbidden, the watch list is not.
func TestProbesThatAreForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 3)...)
		source.noLists = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no list"))
		r, _ := follow(t, source)
		time.Sleep(time.Hour)
		require.NoError(t, r.Ready(2*time.Minute), "%v", r.Status())
		require.NoError(t, r.Status().Err)
		lists, _ := source.asked()
		require.Less(t, lists, 70)
	})
}

// TestAServerThatStartsRefusesProbes: it answers 403 until it has read its roles, and has watches
// by then. The copy is whole, and is not listed again.
func TestAServerThatStartsRefusesProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCluster("500", podsOf("a", "300", 3)...)
		r, _ := follow(t, source)
		before, _ := source.asked()
		source.become("500", podsOf("a", "300", 3)...) // its watches are cut
		source.set(func(c *cluster) {
			c.noLists = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no roles yet"))
		})
		for _, probes := source.asked(); ; time.Sleep(time.Second) {
			if _, now := source.asked(); now > probes {
				break
			}
		}
		source.set(func(c *cluster) { c.noLists = nil })
		time.Sleep(10 * time.Minute)
		lists, _ := source.asked()
		require.Equal(t, before, lists, "%v", r.Status().Lists)
		require.NoError(t, r.Ready(2*time.Minute))
	})
}
