package informer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// scopes are those of the model's members: they overlap.
var scopes = []struct{ namespace, selector string }{
	{"a", ""}, {"b", ""}, {"", "at=1"}, {"", "at in (1,2)"}, {"a", "at!=3"}, {"c", "at=2"}, {"", ""},
}

// unionModel changes pods at random, adds, removes, refuses and holds up members, and breaks their
// connections.
type unionModel struct {
	t       *testing.T
	random  *rand.Rand
	pods    *fakePods
	union   *podUnion
	members map[int]*modelMember // by index in scopes
	held    map[string]*corev1.Pod
	newest  map[string]int // the newest version told, by key
	cuts    []*listwatchtest.Fault
}

type modelMember struct {
	*informer.Member[*corev1.Pod]
	source *refusable
	goOn   func() // nil unless held up
	frozen map[string]*corev1.Pod
}

// matching returns the server's present pods in a scope.
func (m *unionModel) matching(scope int) map[string]*corev1.Pod {
	s := scopes[scope]
	selector, err := labels.Parse(s.selector)
	require.NoError(m.t, err)
	found := map[string]*corev1.Pod{}
	for key, pod := range m.pods.Origin().Snapshot().All() {
		if (s.namespace == "" || pod.Namespace == s.namespace) && selector.Matches(labels.Set(pod.Labels)) {
			found[key] = pod
		}
	}
	return found
}

// tell requires that each event begins where the key's last one ended, and that no key goes back in
// time.
func (m *unionModel) tell(e podEvent) {
	last, held := m.held[e.Key]
	version, err := strconv.Atoi(e.Object().ResourceVersion)
	assert.NoError(m.t, err)
	assert.GreaterOrEqual(m.t, version, m.newest[e.Key], "%s %s goes back", e.Type, e.Key)
	m.newest[e.Key] = version
	switch e.Type {
	case informer.Added:
		assert.False(m.t, held, "%s is added twice", e.Key)
		m.held[e.Key] = e.New
	case informer.Updated:
		assertSame(m.t, last, e.Old)
		m.held[e.Key] = e.New
	case informer.Deleted:
		assert.True(m.t, held, "%s is deleted but was not there", e.Key)
		assert.Equal(m.t, last.UID, e.Old.UID)
		delete(m.held, e.Key)
	}
}

func (m *unionModel) step() {
	scope := m.random.IntN(len(scopes))
	member := m.members[scope]
	switch p := m.random.IntN(100); {
	case p < 6 && member == nil:
		m.add(scope)
	case p < 9 && member != nil:
		if member.goOn != nil {
			member.goOn()
		}
		member.Remove()
		delete(m.members, scope)
	case p < 12 && member != nil && member.frozen == nil && member.goOn == nil:
		m.settle() // so that the refused member's objects are known
		member.frozen = m.matching(scope)
		member.source.refuse(true)
	case p < 16 && member != nil && member.frozen != nil:
		member.source.refuse(false)
		member.frozen = nil
	case p < 22 && member != nil && member.frozen == nil && member.goOn == nil:
		member.goOn = member.source.holdUp()
	case p < 34 && member != nil && member.goOn != nil:
		member.goOn()
		member.goOn = nil
	case p < 36:
		m.cuts = append(m.cuts, m.pods.Disconnect(listwatchtest.On(listwatchtest.Watch)))
	case p < 37:
		m.pods.Expire()
	case p < 40:
		m.settle()
		m.check()
	default:
		m.change()
	}
}

func (m *unionModel) add(scope int) {
	s := scopes[scope]
	selector, err := labels.Parse(s.selector)
	require.NoError(m.t, err)
	source := &refusable{podSource: m.pods.ListerWatcher(listwatch.InNamespace(s.namespace), listwatch.Labels(selector))}
	m.members[scope] = &modelMember{Member: join(m.t, m.union, fmt.Sprint("scope-", scope), source), source: source}
}

func (m *unionModel) change() {
	namespace, name := string(rune('a'+m.random.IntN(3))), fmt.Sprint("p", m.random.IntN(4))
	at := map[string]string{"at": fmt.Sprint(1 + m.random.IntN(3))}
	pod, there := m.pods.Origin().Snapshot().Get(namespace + "/" + name)
	switch {
	case !there:
		m.pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: at}})
	case m.random.IntN(3) == 0:
		m.pods.Remove(pod)
	default:
		pod = pod.DeepCopy()
		pod.Labels = at
		pod.Annotations = map[string]string{"step": fmt.Sprint(m.random.Uint64())}
		m.pods.Update(pod)
	}
}

// settle lets every member that is not refused catch up.
func (m *unionModel) settle() {
	for _, member := range m.members {
		if member.goOn != nil {
			member.goOn()
			member.goOn = nil
		}
	}
	for _, cut := range m.cuts { // each would cut a later watch, one after the other
		cut.Lift()
	}
	m.cuts = nil
	time.Sleep(5 * time.Minute) // simulated time: more than any backoff and the liveness period
	synctest.Wait()
}

// check compares the union with a naive one: the server's present pods in the scopes of healthy
// members. Besides these, it may only hold what a refused member had.
func (m *unionModel) check() {
	want, frozen := map[string]*corev1.Pod{}, map[string][]*corev1.Pod{}
	for scope, member := range m.members {
		if member.frozen == nil {
			maps.Copy(want, m.matching(scope))
			require.NoError(m.t, member.WaitSynced(m.t.Context()))
		}
		for key, pod := range member.frozen {
			frozen[key] = append(frozen[key], pod)
		}
	}
	now := maps.Collect(m.union.Snapshot().All())
	require.Equal(m.t, contentOf(maps.Values(now)), contentOf(maps.Values(m.held)), "the handler has what the store has")
	for key, pod := range want {
		held, there := now[key]
		require.True(m.t, there, "%s at %s is missing", key, pod.ResourceVersion)
		require.Equal(m.t, pod.ResourceVersion, held.ResourceVersion, key)
		require.Equal(m.t, pod.UID, held.UID, key)
		delete(now, key)
	}
	for key, pod := range now {
		held := slices.ContainsFunc(frozen[key], func(f *corev1.Pod) bool { return f.UID == pod.UID })
		require.Truef(m.t, held, "%s at %s, which nobody has", key, pod.ResourceVersion)
	}
	for key, pods := range frozen { // it goes only if something newer under the key proves its end
		if _, kept := now[key]; !kept && want[key] == nil {
			newest := 0
			for _, f := range pods {
				version, err := strconv.Atoi(f.ResourceVersion)
				require.NoError(m.t, err)
				newest = max(newest, version)
			}
			require.Greater(m.t, m.newest[key], newest, key)
		}
	}
}

// checkVersion compares a snapshot with the version that it states: each object of a member's scope
// that has not changed since that version is there.
func (m *unionModel) checkVersion() {
	now := m.union.Snapshot()
	complete, _ := strconv.Atoi(now.ResourceVersion()) // zero while a member has no list
	for scope := range m.members {
		for key, pod := range m.matching(scope) {
			version, err := strconv.Atoi(pod.ResourceVersion)
			require.NoError(m.t, err)
			if held, there := now.Get(key); version <= complete {
				require.Truef(m.t, there, "%s at %d is missing in a snapshot that is complete up to %d", key, version, complete)
				require.Equal(m.t, pod.ResourceVersion, held.ResourceVersion, key)
			}
		}
	}
}

// TestUnionModel compares a union with a naive one under random changes, members and faults.
func TestUnionModel(t *testing.T) {
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runUnionModel(t, seed) })
		})
	}
}

func runUnionModel(t *testing.T, seed uint64) {
	m := &unionModel{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), pods: newPods(t), members: map[int]*modelMember{},
		held: map[string]*corev1.Pod{}, newest: map[string]int{},
	}
	m.union = informer.NewUnion[*corev1.Pod](informer.WithRing(1 + m.random.IntN(100)))
	for range 10 {
		m.change()
	}
	m.add(0)
	m.add(3)
	add(t, m.union, m.tell)
	stop := start(t, m.union)
	for range 250 {
		m.step()
		m.checkVersion()
		time.Sleep(time.Duration(m.random.IntN(300)) * time.Millisecond) // simulated time
		if t.Failed() {
			return
		}
	}
	for _, member := range m.members {
		member.source.refuse(false)
		member.frozen = nil
	}
	m.settle()
	m.check()
	for _, member := range m.members {
		member.Remove()
	}
	synctest.Wait()
	require.Zero(t, m.union.Snapshot().Len())
	require.Empty(t, m.held)
	require.NoError(t, stop())
}
