package clientgo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// inNamespace selects the objects of one namespace, in the place of a range of hashes.
type inNamespace string

func (n inNamespace) Matches(obj runtime.Object) (bool, error) {
	if n == "fails" {
		return false, errors.New("no hash")
	}
	return obj.(metav1.Object).GetNamespace() == string(n), nil
}

// TestShard: an informer has the objects of its shard, whose selector no release may drop.
func TestShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pod := func(namespace, name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
		pods.Create(pod("mine", "a"))
		other := pods.Create(pod("other", "a"))
		s := newInformer(fromClientGo(listwatch.ToClientGo(pods.ListerWatcher())), false, &corev1.Pod{}, 0)
		require.NoError(t, s.SetShard(inNamespace("other")))
		require.NoError(t, s.SetShard(nil))
		require.NoError(t, s.SetShard(inNamespace("mine")))
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() { defer close(ended); s.RunWithContext(wait.ContextForChannel(stop)) }()
		<-s.informer.Synced()
		require.Equal(t, []string{"mine/a"}, s.indexer.ListKeys())
		require.ErrorIs(t, s.SetShard(inNamespace("other")), errLateShard)
		pods.Remove(other)
		pods.Create(pod("other", "b"))
		pods.Create(pod("mine", "b"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{"mine/a", "mine/b"}, s.indexer.ListKeys())
		close(stop)
		<-ended
	})
}

// TestAShardThatFails: nothing is taken for an object of the shard, or for none.
func TestAShardThatFails(t *testing.T) {
	check := &checked{}
	var fails shardSelector = inNamespace("fails")
	check.shard.Store(&fails)
	_, err := check.object("list", "", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	var unusable *listwatch.DecodeError
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, err, "no hash")
}

// TestAShardThatNothingObeys: a factory drops an error, so there is none to drop.
func TestAShardThatNothingObeys(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	built := newShared[*corev1.Pod](informer.New(pods.ListerWatcher()))
	require.NoError(t, built.SetShard(nil))
	require.PanicsWithError(t, errShard.Error(), func() { _ = built.SetShard(inNamespace("mine")) })
	made := newInformer(fromClientGo(listwatch.ToClientGo(pods.ListerWatcher())), false, nil, 0)
	require.PanicsWithError(t, errShard.Error(), func() { _ = made.SetShard("a selector of another form") })
}
