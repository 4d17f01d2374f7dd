package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

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
	queue  []event
}

// event is what a kubelet tells its clients.
type event struct {
	kind Event
	raw  []byte
}

// newLedger takes pods in protobuf.
func newLedger(grace time.Duration) *Ledger {
	return Open("node-1", grace, func(raw []byte) (*corev1.Pod, error) {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(raw); err != nil {
			return nil, ErrUndecodable
		}
		return pod, nil
	})
}

// happens takes an event of a good pod.
func happens(t *testing.T, l *Ledger, kind Event, raw []byte, now time.Time) {
	l.Happened(kind, raw, now)
	require.NoError(t, l.last.bad)
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

func (m *model) tell(kind Event, pod *corev1.Pod) {
	if m.random.IntN(10) > 0 { // else the buffer was full
		m.queue = append(m.queue, event{kind, m.bytes(pod)})
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
			Annotations: map[string]string{manifest.SourceAnnotation: "api", manifest.SeenAnnotation: firstSeen},
		}}
		m.pods[pod.UID] = pod
		m.tell(Added, pod)
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
		pod.Status.StartTime = ptr.To(metav1.NewTime(m.now))
		m.tell(Modified, pod)
	case 3:
		if m.ended[pod.UID] { // long after the event
			delete(m.pods, pod.UID)
			return
		}
		m.ended[pod.UID] = true
		m.queue = append(m.queue, event{Deleted, m.bytes(pod)})
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
			l, told, newest := newLedger(time.Minute), map[types.UID]bool{}, map[types.UID]time.Time{}
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
						happens(t, l, event.kind, event.raw, m.now)
						if event.kind == Deleted {
							pod := &corev1.Pod{}
							require.NoError(t, pod.Unmarshal(event.raw))
							told[pod.UID] = true
						}
					}
				case 4:
					if !listing {
						l.Asks()
						answer, listing = m.list(), true
					}
				case 5:
					if listing {
						l.List(answer, m.now)
						require.NoError(t, l.last.bad)
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
				happens(t, l, event.kind, event.raw, m.now)
			}
			l.Asks()
			l.List(m.list(), m.now)
			require.NoError(t, l.last.bad)
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
			pods, err := l.Snapshot()
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
func ledgerOf(t *testing.T, m *model, pods ...*corev1.Pod) *Ledger {
	l := newLedger(time.Minute)
	m.t, m.now = t, time.Unix(1_800_000_000, 0)
	l.List(listOf(m, pods...), m.now)
	require.NoError(t, l.last.bad)
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
		Annotations: map[string]string{manifest.SourceAnnotation: source, manifest.SeenAnnotation: firstSeen},
	}}
}

// firstSeen is when the kubelet first saw its pods, unless it restarts.
const firstSeen = "2026-11-25T10:00:00.123456789Z"

// seenAt has the pods as a kubelet tells them that saw them first at another time; or at none, for
// a server that stands for a kubelet.
func seenAt(at string, pods ...*corev1.Pod) (all []*corev1.Pod) {
	for _, pod := range pods {
		pod = pod.DeepCopy()
		if pod.Annotations[manifest.SeenAnnotation] = at; at == "" {
			delete(pod.Annotations, manifest.SeenAnnotation)
		}
		all = append(all, pod)
	}
	return all
}

func names(l *Ledger) (all []string) {
	now, _ := l.Snapshot()
	for _, pod := range now.Sorted() {
		all = append(all, pod.Name)
	}
	return all
}

// TestAPutBackStaticPod has the UID that was told DELETED.
func TestAPutBackStaticPod(t *testing.T) {
	var m model
	etcd, web := pod("etcd", "file"), pod("web", "api")
	for name, back := range map[string]func(l *Ledger){
		"by an event": func(l *Ledger) {
			for _, pod := range []*corev1.Pod{etcd, web} {
				happens(t, l, Added, m.bytes(pod), m.now)
			}
		},
		"by a list, after one without it": func(l *Ledger) {
			for _, pods := range [][]*corev1.Pod{{etcd, web}, {}, {etcd, web}} {
				l.Asks()
				l.List(listOf(&m, pods...), m.now)
			}
		},
		"by lists that go on having it": func(l *Ledger) {
			for after := range 13 {
				l.Asks()
				l.List(listOf(&m, etcd, web), m.now.Add(time.Duration(after)*time.Minute))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledgerOf(t, &m, etcd, web)
			for _, pod := range []*corev1.Pod{etcd, web} {
				happens(t, l, Deleted, m.bytes(pod), m.now)
				happens(t, l, Modified, m.bytes(pod), m.now)
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
	l.List([][]byte{m.bytes(pod("web", "api")), []byte("hunter2")}, m.now)
	round := l.Round("the kubelet", true)
	require.Len(t, round.Problems, 2)
	require.EqualError(t, round.Problems[0], "the kubelet: a pod of the kubelet cannot be decoded, or has no name or UID")
	require.EqualError(t, round.Problems[1], "the kubelet: 1 pods are kept that the kubelet does not list: it may have started anew")
	require.False(t, round.Complete)
	l.List(listOf(&m, pod("web", "api")), m.now)
	require.True(t, l.Round("", true).Complete)
	l.Happened(Modified, m.bytes(&corev1.Pod{}), m.now)
	require.False(t, l.Round("", true).Complete)
	require.Equal(t, []string{"web"}, names(l))
}

// TestEqualBytesAreDecodedOnce: the pod of an unchanged list is the same pointer.
func TestEqualBytesAreDecodedOnce(t *testing.T) {
	var m model
	l := ledgerOf(t, &m, pod("web", "api"))
	before := l.held["web"].pod
	_, _ = l.Snapshot()
	l.List(listOf(&m, pod("web", "api")), m.now)
	require.Same(t, before, l.held["web"].pod)
	require.False(t, l.Changed())
}
