package informer_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store/packed"
)

// TestAUnionIsVerified: the server makes changes without an event, which a member and so the union
// never hear of. They overlap, and each is found in each member that has it.
func TestAUnionIsVerified(t *testing.T) {
	for form, options := range map[string][]informer.Option{"interned": nil, "packed": {informer.WithStore(packed.New[corev1.Pod])}} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &restoredWorld{server: newServer("stale", "extra", "well")}
				reports := make(chan informer.Drift, 10)
				u := informer.NewUnion[*corev1.Pod](append(options, informer.WithVerification(4*time.Second, func(d informer.Drift, err error) {
					require.NoError(t, err)
					reports <- d
				}))...)
				join(t, u, "some", w.of("stale", "extra", "missing"))
				join(t, u, "others", w.of("extra", "well"))
				start(t, u)
				require.NoError(t, u.WaitSynced(t.Context()))
				w.silence()
				w.put("stale")
				w.remove("extra")
				w.put("missing")
				w.lose()
				w.disconnect(false)
				time.Sleep(3 * time.Second) // simulated time: the reflectors back off
				w.bookmark()
				d := <-reports
				require.ElementsMatch(t, []informer.Difference{
					{Key: "ns/stale", Server: "4", Store: "1"}, {Key: "ns/extra", Store: "2"}, {Key: "ns/extra", Store: "2"},
					{Key: "ns/missing", Server: "6"},
				}, d.Differences)
				require.Equal(t, 4, d.Count)
				time.Sleep(time.Second) // simulated time
				require.Equal(t, w.now(), contentOf(maps.Values(maps.Collect(u.Snapshot().All()))), "a relist heals it")
				require.True(t, u.Status().Drift.Healed)
				require.NoError(t, u.Ready(time.Minute))
			})
		})
	}
}

// TestVerifyNamesTheMember: a verification of a union ends with the first member that cannot be
// verified. Optional ones that are not synced are left out.
func TestVerifyNamesTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := informer.NewUnion[*corev1.Pod]()
		start(t, u)
		_, err := u.Verify(t.Context())
		require.ErrorContains(t, err, "the union has no members")
		refused := &refusable{podSource: newServer("a")}
		refused.refuse(true)
		_, err = u.AddOptional("optional", refused)
		require.NoError(t, err)
		join(t, u, "all", newServer("b"))
		d, err := u.Verify(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, d.Objects)
		require.Equal(t, reflector.OK, u.Status().Verdict(0).Class)

		also := &refusable{podSource: newServer("c")}
		also.refuse(true)
		join(t, u, "of others", also)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = u.Verify(ctx)
		require.ErrorContains(t, err, `member "of others"`)
	})
}
