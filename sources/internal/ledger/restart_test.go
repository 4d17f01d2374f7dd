package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestMissingPodsAreKept: a static one for the grace, and one of the API server until two lists
// with others lack it, or for an hour.
func TestMissingPodsAreKept(t *testing.T) {
	web, more, etcd := pod("web", "api"), pod("more", "api"), pod("etcd", "file")
	type list struct {
		after  time.Duration // the beginning
		pods   []*corev1.Pod
		kept   int
		doubt  bool
		remain []string
	}
	all := []string{"etcd", "more", "web"}
	for name, row := range map[string]struct {
		grace time.Duration
		over  Connection
		lost  bool
		lists []list
	}{
		"static pods alone, then all": {time.Minute, Same, true, []list{
			{0, nil, 3, true, all},
			{59 * time.Second, []*corev1.Pod{etcd}, 2, true, all},
			{59 * time.Minute, []*corev1.Pod{etcd}, 2, true, all},
			{59 * time.Minute, []*corev1.Pod{web, more, etcd}, 0, false, all},
			{59 * time.Minute, []*corev1.Pod{web, etcd}, 0, false, []string{"etcd", "web"}},
		}},
		"a static pod is gone": {time.Minute, Same, true, []list{
			{59 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{time.Minute, []*corev1.Pod{web, more}, 0, false, []string{"more", "web"}},
		}},
		"a pod is gone": {time.Minute, Same, true, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web}, 0, false, []string{"etcd", "web"}},
		}},
		"the pods of the API server are read one by one": {time.Minute, Same, true, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web, more}, 0, false, all},
		}},
		"none comes within the hour": {time.Minute, Same, true, []list{
			{Patience - 1, []*corev1.Pod{etcd}, 2, true, all},
			{Patience, []*corev1.Pod{etcd}, 0, true, []string{"etcd"}},
		}},
		"without grace": {0, Same, true, []list{
			{0, []*corev1.Pod{etcd}, 0, true, []string{"etcd"}},
			{0, []*corev1.Pod{web}, 0, false, []string{"web"}},
		}},
		"a new connection, and static pods alone": {time.Minute, New, false, []list{
			{0, []*corev1.Pod{etcd}, 2, true, all},
			{0, []*corev1.Pod{etcd, web, more}, 0, false, all},
		}},
		"a new connection for each list": {time.Minute, New, false, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web}, 0, false, []string{"etcd", "web"}},
		}},
		"the same connection": {time.Minute, Same, false, []list{
			{0, []*corev1.Pod{etcd}, 0, false, []string{"etcd"}},
			{0, nil, 0, false, nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var m model
			m.t, m.now = t, time.Unix(1_800_000_000, 0)
			l := newLedger(row.grace)
			l.List(listOf(&m, web, more, etcd), Same, m.now)
			require.NoError(t, l.Round("", true).Doubt)
			if row.lost {
				l.Lost(m.now)
			}
			for i, list := range row.lists {
				l.List(listOf(&m, list.pods...), row.over, m.now.Add(list.after))
				require.Equal(t, list.kept, l.last.kept, i)
				require.Equal(t, list.doubt, l.Round("", true).Doubt != nil, i)
				require.Equal(t, list.remain, names(l), i)
			}
		})
	}
}

// TestAFirstListOfStaticPodsProvesNothing, nor does one of nothing, or of another node's pods.
func TestAFirstListOfStaticPodsProvesNothing(t *testing.T) {
	m := model{t: t}
	l := newLedger(time.Minute)
	require.NoError(t, l.Round("", true).Doubt, "nothing was listed")
	for _, pods := range [][]*corev1.Pod{nil, {pod("etcd", "file")}} {
		l.List(listOf(&m, pods...), New, m.now)
		require.EqualError(t, l.Round("https://kubelet/pods", true).Doubt,
			"https://kubelet/pods: the kubelet lists no pod of the API server: it may have just started, so that pods are missing")
	}
	web := pod("web", "api")
	web.Spec.NodeName = "node-2"
	l.List(listOf(&m, web), Same, m.now)
	require.EqualError(t, l.Round("https://kubelet/pods", true).Doubt,
		`https://kubelet/pods: it lists pods of the node "node-2", and not of "node-1": is it another node's kubelet, or has New another node's name?`)
	web.Spec.NodeName = "node-1"
	l.List(listOf(&m, web), Same, m.now)
	require.NoError(t, l.Round("", true).Doubt)
}

// stage is how much of its sources a kubelet has read.
type stage int

const (
	away    stage = iota // it does not answer
	nothing              // it lists nothing
	statics              // it lists its static pods alone
	partly               // it admits the pods of the API server: it lists some of them, once
	whole
)

// node is a node with a kubelet that restarts, and the oracle: the pods that are there, and what
// the lists have shown of them.
type node struct {
	model
	stage    stage
	seen     bool      // a list has shown the whole kubelet
	started  time.Time // when it was last seen to be away, or restarted unseen
	closed   bool      // its connections have ended since the last poll
	stays    bool      // away, until a poll has failed
	existing map[types.UID]*corev1.Pod
	listed   map[types.UID]bool // at least once
	lost     time.Time          // the last failed poll
	// gone has how many lists of a whole kubelet, with pods of the API server, have lacked a pod
	// that is not there any more.
	gone map[types.UID]int
	// heard: a pod of the API server was listed since the kubelet has started.
	heard bool
}

// step changes the pods or the kubelet.
func (n *node) step() {
	n.now = n.now.Add(time.Duration(n.random.IntN(15)) * time.Second)
	switch n.random.IntN(8) {
	case 0, 1:
		n.made++
		p := pod(fmt.Sprint("p", n.made), []string{"api", "api", "file"}[n.random.IntN(3)])
		n.existing[p.UID] = p
	case 2:
		for uid := range n.existing { // any of them
			delete(n.existing, uid)
			n.gone[uid] = 0
			break
		}
	case 3:
		if n.stage == whole {
			n.restart()
		}
	default:
		n.proceed()
	}
}

// restart ends the kubelet. It restarts between two polls only after it was seen whole.
func (n *node) restart() {
	n.stage, n.stays, n.started, n.heard = away, !n.seen, n.now, false
	n.closed, n.seen = true, false
	if !n.stays && n.random.IntN(2) == 0 {
		n.stage = nothing
	}
}

// proceed has the kubelet read more: static pods at once, and those of the API server within half
// an hour.
func (n *node) proceed() {
	since := n.now.Sub(n.started)
	switch {
	case n.stays:
	case n.stage == away, n.stage == nothing:
		if n.stage++; n.stage == nothing {
			n.started = n.now
		}
	case n.stage == statics && (n.random.IntN(4) == 0 || since > 30*time.Minute):
		n.stage += stage(1 + n.random.IntN(2))
	}
}

// list is what the kubelet lists now.
func (n *node) listNow() (pods []*corev1.Pod) {
	for _, p := range n.existing {
		static := isStatic(p)
		if n.stage == whole || static && n.stage >= statics || n.stage == partly && n.random.IntN(2) == 0 {
			pods = append(pods, p)
		}
	}
	return pods
}

// poll asks the kubelet, and tells the oracle and the ledger.
func (n *node) poll(l *Ledger) {
	if n.stage == away {
		l.Lost(n.now)
		n.stays = false
		n.breaks()
		return
	}
	over := Same
	if n.closed || n.random.IntN(10) == 0 {
		over = New
	}
	n.closed = false
	pods := n.listNow()
	api := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !isStatic(p) })
	if over == New && !api {
		n.breaks()
	}
	l.Asks()
	l.List(listOf(&n.model, pods...), over, n.now)
	n.heard = n.heard || api
	for _, p := range pods {
		n.listed[p.UID] = true
	}
	if n.stage == whole && api {
		for uid := range n.gone {
			n.gone[uid]++
		}
	}
	n.seen = n.stage == whole
	switch n.stage {
	case nothing:
		n.stage = statics
	case partly:
		n.stage = whole
	}
}

// breaks notes that the kubelet may start anew, as far as its client knows.
func (n *node) breaks() {
	n.lost, n.heard = n.now, false
	for uid := range n.gone {
		n.gone[uid] = 0
	}
}

// check holds the ledger against the oracle.
func (n *node) check(t *testing.T, l *Ledger) {
	for uid, p := range n.existing {
		if n.listed[uid] {
			require.Contains(t, l.held, uid, "the pod %s is there, and was listed", p.Name)
		}
	}
	for uid, lists := range n.gone {
		if one, held := l.held[uid]; held {
			static := isStatic(one.pod) && n.now.Before(n.lost.Add(time.Minute))
			require.True(t, lists < 2 || static, "the pod %s is gone, and %d lists have lacked it", uid, lists)
		}
	}
	if n.stage != away && !n.closed {
		require.True(t, n.heard || l.Round("", true).Doubt != nil, "the kubelet has told no pod of the API server, and there is no doubt")
	}
	require.Len(t, l.known, len(l.held))
	require.Subset(t, slices.Collect(maps.Keys(l.held)), slices.Collect(maps.Keys(l.absent)))
}

// TestLedgerOfAKubeletThatRestarts: pods come and go, the kubelet restarts, seen by a failed poll
// or not, and is asked at any time. The ledger never lacks a pod that is there and was listed. It
// has no pod that two lists of a whole kubelet have lacked. It doubts each list of a kubelet that
// has told no pod of the API server since it started.
func TestLedgerOfAKubeletThatRestarts(t *testing.T) {
	for range 300 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			n := &node{
				model: model{t: t, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_800_000_000, 0)},
				stage: whole, seen: true, existing: map[types.UID]*corev1.Pod{}, listed: map[types.UID]bool{}, gone: map[types.UID]int{},
			}
			n.started = n.now
			l := newLedger(time.Minute)
			for range 300 {
				if n.random.IntN(2) == 0 {
					n.step()
					continue
				}
				n.poll(l)
				n.check(t, l)
			}
		})
	}
}
