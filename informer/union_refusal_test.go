package informer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestMemberWithoutWatchLists: if a LIST follows a refused watch list at once, handlers wait for
// that. They wait for no member that is asked again after a while.
func TestMemberWithoutWatchLists(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"not served": {apierrors.NewBadRequest("sendInitialEvents is forbidden"), "added ns/a >2 initial"},
		"forbidden":  {apierrors.NewForbidden(corev1.Resource("pods"), "", nil), "added ns/a >2 initial"},
		"throttled":  {apierrors.NewTooManyRequests("later", 0), "added ns/a >2"},
		"broken":     {errors.New("no leader"), "added ns/a >2 initial"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := newPods(t, "a")
				refused := pods.Fail(listwatchtest.List, row.err)
				u := informer.NewUnion[*corev1.Pod]()
				join(t, u, "all", pods.ListerWatcher())
				var r recorder
				add(t, u, r.handle)
				start(t, u)
				require.NoError(t, u.WaitSynced(t.Context()))
				synctest.Wait()
				require.Equal(t, []string{row.want}, r.take())
				require.Positive(t, refused.Struck())
				require.NotNil(t, pods.Server().Requests()[0].Options.SendInitialEvents)
			})
		})
	}
}

// TestOptionalMember: a union is synced and ready without a member that is refused, if that is
// optional. A union without members is not ready, since nobody knows what it is to have.
func TestOptionalMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := informer.NewUnion[*corev1.Pod]()
		start(t, u)
		synctest.Wait()
		require.ErrorContains(t, u.Ready(time.Minute), "the union has no members")
		refused := &refusable{podSource: newServer("a").of("a"), refused: true}
		_, err := u.AddOptional("optional", refused)
		require.NoError(t, err)
		join(t, u, "needed", newServer("b").of("b"))
		require.NoError(t, u.WaitSynced(t.Context()))
		synctest.Wait()
		require.NoError(t, u.Ready(time.Minute))
		require.Equal(t, []string{"ns/b"}, keysOf(u.Snapshot()))
		require.NotEmpty(t, u.Snapshot().ResourceVersion())
		members := u.Members()
		require.True(t, members[0].Optional)
		require.Error(t, members[0].Err)
		refused.refuse(false)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"ns/a", "ns/b"}, keysOf(u.Snapshot()))
	})
}

// TestAnOptionalMemberAlone is synced like any other.
func TestAnOptionalMemberAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := informer.NewUnion[*corev1.Pod]()
		start(t, u)
		m, err := u.AddOptional("optional", newServer("a").of("a"))
		require.NoError(t, err)
		require.NoError(t, m.WaitSynced(t.Context()))
		require.Equal(t, []string{"ns/a"}, keysOf(u.Snapshot()))
		require.NotEmpty(t, u.Snapshot().ResourceVersion())
	})
}
