package kubelet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// model is a kubelet: its pods, and the events that its clients have not read.
type model struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	made   int
	pods   map[types.UID]*corev1.Pod // as lists show them
	ended  map[types.UID]bool        // the UIDs that were told DELETED
	queue  []*api.WatchPodsEvent
}

func (m *model) bytes(pod *corev1.Pod) []byte {
	data, err := pod.Marshal()
	require.NoError(m.t, err)
	return data
}

func (m *model) list() (all [][]byte) {
	for _, pod := range m.pods {
		all = append(all, m.bytes(pod))
	}
	return all
}

func (m *model) tell(kind api.EventType, pod *corev1.Pod) {
	if m.random.IntN(10) > 0 { // else the buffer was full
		m.queue = append(m.queue, &api.WatchPodsEvent{Type: kind, Pod: m.bytes(pod)})
	}
}

// step changes the kubelet in one way.
func (m *model) step() {
	m.now = m.now.Add(time.Second)
	uids := make([]types.UID, 0, len(m.pods))
	for uid := range m.pods {
		uids = append(uids, uid)
	}
	if len(uids) < 3 || m.random.IntN(5) == 0 {
		m.made++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("p", m.made%4), UID: types.UID(fmt.Sprint(m.made)),
			ResourceVersion: "1", CreationTimestamp: metav1.NewTime(m.now),
			Annotations: map[string]string{manifest.SourceAnnotation: "api"},
		}}
		m.pods[pod.UID] = pod
		m.tell(api.EventType_ADDED, pod)
		return
	}
	pod := m.pods[uids[m.random.IntN(len(uids))]].DeepCopy()
	switch m.random.IntN(4) {
	case 0: // which tells nothing
		pod.Labels = map[string]string{"at": m.now.String()}
	case 1, 2:
		if m.ended[pod.UID] {
			return
		}
		pod.Status.StartTime = new(metav1.NewTime(m.now))
		m.tell(api.EventType_MODIFIED, pod)
	case 3:
		if m.ended[pod.UID] { // long after the event
			delete(m.pods, pod.UID)
			return
		}
		m.ended[pod.UID] = true
		m.queue = append(m.queue, &api.WatchPodsEvent{Type: api.EventType_DELETED, Pod: m.bytes(pod)})
	}
	m.pods[pod.UID] = pod
}

// TestLedgerFollowsAnyKubelet: events come late or never, and lists overtake them. After the next
// list the ledger has the kubelet's pods without those that were told DELETED. At no time it has
// one of these, and no status goes back.
func TestLedgerFollowsAnyKubelet(t *testing.T) {
	for range 300 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := &model{
				t: t, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_800_000_000, 0),
				pods: map[types.UID]*corev1.Pod{}, ended: map[types.UID]bool{},
			}
			l, told, newest := newLedger(), map[types.UID]bool{}, map[types.UID]time.Time{}
			var answer [][]byte // of the list under way
			listing := false
			for range 200 {
				switch m.random.IntN(6) {
				case 0, 1, 2:
					m.step()
				case 3:
					if len(m.queue) > 0 {
						event := m.queue[0]
						m.queue = m.queue[1:]
						require.NoError(t, l.event(event.Type, event.Pod, m.now))
						if event.Type == api.EventType_DELETED {
							pod := &corev1.Pod{}
							require.NoError(t, pod.Unmarshal(event.Pod))
							told[pod.UID] = true
						}
					}
				case 4:
					if !listing {
						l.asks()
						answer, listing = m.list(), true
					}
				case 5:
					if listing {
						_, err := l.list(answer, m.now)
						require.NoError(t, err)
						listing = false
					}
				}
				for uid, one := range l.held {
					require.False(t, told[uid], "%s was told DELETED", uid)
					if at := one.pod.Status.StartTime; at != nil {
						require.False(t, at.Time.Before(newest[uid]), "the status of %s went back", uid)
						newest[uid] = at.Time
					} else {
						require.Zero(t, newest[uid], "the status of %s went back", uid)
					}
				}
				require.Len(t, l.known, len(l.held))
			}
			for _, event := range m.queue {
				require.NoError(t, l.event(event.Type, event.Pod, m.now))
			}
			l.asks()
			_, err := l.list(m.list(), m.now)
			require.NoError(t, err)
			want := map[types.UID][]byte{}
			for uid, pod := range m.pods {
				if !m.ended[uid] {
					want[uid] = m.bytes(pod)
				}
			}
			got := map[types.UID][]byte{}
			for uid, one := range l.held {
				got[uid] = m.bytes(one.pod)
			}
			require.Equal(t, want, got)
			pods, err := l.snapshot()
			require.NoError(t, err)
			for _, pod := range pods.All() {
				for _, other := range l.held {
					require.False(t, other.pod.Name == pod.Name && other.pod.CreationTimestamp.After(pod.CreationTimestamp.Time))
				}
			}
		})
	}
}

// ledgerOf holds pods that a list had.
func ledgerOf(t *testing.T, m *model, pods ...*corev1.Pod) *ledger {
	l := newLedger()
	m.t, m.now = t, time.Unix(1_800_000_000, 0)
	_, err := l.list(listOf(m, pods...), m.now)
	require.NoError(t, err)
	return l
}

func listOf(m *model, pods ...*corev1.Pod) (all [][]byte) {
	for _, pod := range pods {
		all = append(all, m.bytes(pod))
	}
	return all
}

func pod(name, source string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7",
		Annotations: map[string]string{manifest.SourceAnnotation: source},
	}}
}

func names(l *ledger) (all []string) {
	now, _ := l.snapshot()
	for _, pod := range now.Sorted() {
		all = append(all, pod.Name)
	}
	return all
}

// TestMissingPodsAreKept: for the grace, and on while no pod of the API server is listed.
func TestMissingPodsAreKept(t *testing.T) {
	var m model
	web, more, etcd := pod("web", "api"), pod("more", "api"), pod("etcd", "file")
	l := ledgerOf(t, &m, web, more, etcd)
	list := func(after time.Duration, pods ...*corev1.Pod) int {
		missing, err := l.list(listOf(&m, pods...), m.now.Add(after))
		require.NoError(t, err)
		return missing
	}
	l.lost(m.now.Add(time.Minute))
	require.Equal(t, 3, list(0))
	require.Equal(t, 2, list(time.Minute, etcd))
	require.Equal(t, 2, list(time.Hour), "etcd is gone, and the kubelet has no API server yet")
	require.Equal(t, []string{"more", "web"}, names(l))
	require.Zero(t, list(time.Hour, web))
	require.Equal(t, []string{"web"}, names(l))
	require.Zero(t, list(time.Hour))
	require.Empty(t, names(l), "the connection has not been lost since")
}

// TestAPutBackStaticPod has the UID that was told DELETED.
func TestAPutBackStaticPod(t *testing.T) {
	var m model
	etcd, web := pod("etcd", "file"), pod("web", "api")
	for name, back := range map[string]func(l *ledger){
		"by an event": func(l *ledger) {
			for _, pod := range []*corev1.Pod{etcd, web} {
				require.NoError(t, l.event(api.EventType_ADDED, m.bytes(pod), m.now))
			}
		},
		"by a list, after one without it": func(l *ledger) {
			for _, pods := range [][]*corev1.Pod{{etcd, web}, {}, {etcd, web}} {
				l.asks()
				_, err := l.list(listOf(&m, pods...), m.now)
				require.NoError(t, err)
			}
		},
		"by lists that go on having it": func(l *ledger) {
			for after := range 13 {
				l.asks()
				_, err := l.list(listOf(&m, etcd, web), m.now.Add(time.Duration(after)*time.Minute))
				require.NoError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledgerOf(t, &m, etcd, web)
			for _, pod := range []*corev1.Pod{etcd, web} {
				require.NoError(t, l.event(api.EventType_DELETED, m.bytes(pod), m.now))
				require.NoError(t, l.event(api.EventType_MODIFIED, m.bytes(pod), m.now))
			}
			require.Empty(t, names(l))
			back(l)
			require.Equal(t, []string{"etcd"}, names(l), "web is of the API server")
		})
	}
}

// TestABadPod costs only itself, and may be any pod that is missing.
func TestABadPod(t *testing.T) {
	var m model
	l := ledgerOf(t, &m, pod("web", "api"), pod("more", "api"))
	missing, err := l.list([][]byte{m.bytes(pod("web", "api")), []byte("hunter2")}, m.now)
	require.EqualError(t, err, "a pod of the kubelet cannot be decoded, or has no name or UID")
	require.Equal(t, 1, missing)
	require.Error(t, l.event(api.EventType_MODIFIED, m.bytes(&corev1.Pod{}), m.now))
	require.Equal(t, []string{"more", "web"}, names(l))
}

// TestEqualBytesAreDecodedOnce: the pod of an unchanged list is the same pointer.
func TestEqualBytesAreDecodedOnce(t *testing.T) {
	var m model
	l := ledgerOf(t, &m, pod("web", "api"))
	before := l.held["web"].pod
	_, _ = l.snapshot()
	_, err := l.list(listOf(&m, pod("web", "api")), m.now)
	require.NoError(t, err)
	require.Same(t, before, l.held["web"].pod)
	require.False(t, l.changed)
}
