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

// TestMissingPodsAreKept of a kubelet that has started anew, or may have: a static one for the
// grace, and one of the API server until two lists with others lack it, or for an hour. A missing
// pod of the same kubelet is gone.
func TestMissingPodsAreKept(t *testing.T) {
	web, more, etcd := pod("web", "api"), pod("more", "api"), pod("etcd", "file")
	const lost, restarted, unmarked = "lost", "another time", ""
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
		first string   // when the pods of the first list were first seen
		seen  []string // and those of each further one; or lost, which is none
		lists []list
	}{
		"static pods alone, then all": {time.Minute, firstSeen, []string{restarted}, []list{
			{0, nil, 3, true, all},
			{59 * time.Second, []*corev1.Pod{etcd}, 2, true, all},
			{59 * time.Minute, []*corev1.Pod{etcd}, 2, true, all},
			{59 * time.Minute, []*corev1.Pod{web, more, etcd}, 0, false, all},
			{59 * time.Minute, []*corev1.Pod{web, etcd}, 0, false, []string{"etcd", "web"}},
		}},
		"a static pod is gone": {time.Minute, firstSeen, []string{restarted}, []list{
			{0, []*corev1.Pod{web, more}, 1, false, all},
			{59 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{time.Minute, []*corev1.Pod{web, more}, 0, false, []string{"more", "web"}},
		}},
		"a static pod is gone, and each poll after another fails": {time.Minute, unmarked, []string{unmarked, lost}, []list{
			{0, []*corev1.Pod{web, more}, 1, false, all},
			{20 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{40 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{299 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{300 * time.Second, []*corev1.Pod{web, more}, 0, false, []string{"more", "web"}},
		}},
		"a static pod is gone, and some polls fail": {time.Minute, unmarked, []string{unmarked, unmarked, lost}, []list{
			{0, []*corev1.Pod{web, more}, 1, false, all},
			{20 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{60 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{80 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{120 * time.Second, []*corev1.Pod{web, more}, 1, false, all},
			{140 * time.Second, []*corev1.Pod{web, more}, 0, false, []string{"more", "web"}},
		}},
		"the kubelet starts over and over": {time.Minute, firstSeen, []string{lost, restarted}, []list{
			{0, nil, 3, true, all},
			{2 * time.Minute, nil, 3, true, all},
			{4 * time.Minute, nil, 3, true, all},
			{4 * time.Minute, []*corev1.Pod{etcd}, 2, true, all},
		}},
		"a pod is gone": {time.Minute, firstSeen, []string{restarted}, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web}, 0, false, []string{"etcd", "web"}},
		}},
		"a pod is gone, and each poll after another fails": {time.Minute, unmarked, []string{unmarked, lost}, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{time.Second, []*corev1.Pod{etcd, web}, 1, false, all},
			{Patience, []*corev1.Pod{etcd, web}, 0, false, []string{"etcd", "web"}},
		}},
		"a pod is gone, and the kubelet restarts each time": {time.Minute, firstSeen, []string{"a", "b", "c"}, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd}, 2, true, all},
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
		}},
		"the pods of the API server are read one by one": {time.Minute, firstSeen, []string{restarted}, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web, more}, 0, false, all},
		}},
		"none comes within the hour": {time.Minute, firstSeen, []string{restarted}, []list{
			{0, []*corev1.Pod{etcd}, 2, true, all},
			{Patience - 1, []*corev1.Pod{etcd}, 2, true, all},
			{Patience, []*corev1.Pod{etcd}, 0, true, []string{"etcd"}},
		}},
		"without grace": {0, firstSeen, []string{restarted}, []list{
			{0, []*corev1.Pod{etcd}, 0, true, []string{"etcd"}},
			{0, []*corev1.Pod{web}, 0, false, []string{"web"}},
		}},
		"unmarked, and static pods alone": {time.Minute, unmarked, []string{unmarked}, []list{
			{0, []*corev1.Pod{etcd}, 2, true, all},
			{0, []*corev1.Pod{etcd, web, more}, 0, false, all},
		}},
		"unmarked, and one is gone": {time.Minute, unmarked, []string{unmarked}, []list{
			{0, []*corev1.Pod{etcd, web}, 1, false, all},
			{0, []*corev1.Pod{etcd, web}, 0, false, []string{"etcd", "web"}},
		}},
		"the same kubelet": {time.Minute, firstSeen, []string{firstSeen}, []list{
			{0, []*corev1.Pod{etcd}, 0, false, []string{"etcd"}},
			{0, nil, 1, true, []string{"etcd"}},
		}},
		"the same kubelet after a failure": {time.Minute, firstSeen, []string{lost, firstSeen}, []list{
			{0, []*corev1.Pod{web}, 0, false, []string{"web"}},
			{0, []*corev1.Pod{web, etcd}, 0, false, []string{"etcd", "web"}},
			{0, []*corev1.Pod{etcd}, 0, false, []string{"etcd"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var m model
			m.t, m.now = t, time.Unix(1_800_000_000, 0)
			l := newLedger(row.grace)
			l.List(listOf(&m, seenAt(row.first, web, more, etcd)...), m.now)
			require.NoError(t, l.Round("", true).Doubt)
			for i, turn := 0, 0; i < len(row.lists); turn++ {
				seen, list := row.seen[turn%len(row.seen)], row.lists[i]
				if seen == lost {
					l.Lost()
					continue
				}
				i++
				l.List(listOf(&m, seenAt(seen, list.pods...)...), m.now.Add(list.after))
				require.Equal(t, list.kept, l.last.kept, i)
				require.Equal(t, list.doubt, l.Round("", true).Doubt != nil, i)
				require.Equal(t, list.remain, names(l), i)
			}
		})
	}
}

// TestAStandaloneKubeletThatRestarts has static pods alone, and keeps them for the grace although
// it has never listed a pod of an API server.
func TestAStandaloneKubeletThatRestarts(t *testing.T) {
	for name, seen := range map[string]string{"marked": firstSeen, "unmarked": ""} {
		t.Run(name, func(t *testing.T) {
			var m model
			m.t, m.now = t, time.Unix(1_800_000_000, 0)
			l := newLedger(time.Minute)
			pods := seenAt(seen, pod("etcd", "file"), pod("proxy", "http"))
			l.List(listOf(&m, pods...), m.now)
			for after := range 60 {
				l.List(nil, m.now.Add(time.Duration(after)*time.Second))
				require.Equal(t, []string{"etcd", "proxy"}, names(l), after)
			}
			l.List(nil, m.now.Add(time.Minute))
			require.Empty(t, names(l))
		})
	}
}

// TestAFirstListOfStaticPodsProvesNothing, nor does one of nothing, or of another node's pods.
func TestAFirstListOfStaticPodsProvesNothing(t *testing.T) {
	m := model{t: t}
	l := newLedger(time.Minute)
	require.NoError(t, l.Round("", true).Doubt, "nothing was listed")
	for _, pods := range [][]*corev1.Pod{nil, {pod("etcd", "file")}} {
		l.List(listOf(&m, pods...), m.now)
		require.EqualError(t, l.Round("https://kubelet/pods", true).Doubt,
			"https://kubelet/pods: the kubelet lists no pod of the API server: it may have just started, so that pods are missing")
	}
	web := pod("web", "api")
	web.Spec.NodeName = "node-2"
	l.List(listOf(&m, web), m.now)
	require.EqualError(t, l.Round("https://kubelet/pods", true).Doubt,
		`https://kubelet/pods: it lists pods of the node "node-2", and not of "node-1": is it another node's kubelet, or has New another node's name?`)
	web.Spec.NodeName = "node-1"
	l.List(listOf(&m, web), m.now)
	require.NoError(t, l.Round("", true).Doubt)
}

// stage is how much of its sources a kubelet has read.
type stage int

const (
	silent  stage = iota // it does not answer
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
	marks    bool // the kubelet marks its pods
	starts   int
	started  time.Time // when it was last seen to be away, or restarted unseen
	seen     bool      // a list has shown the whole kubelet
	stays    bool      // silent, until a poll has failed
	polled   time.Time // the last list
	existing map[types.UID]*corev1.Pod
	listed   map[types.UID]int // the last start of the kubelet that has listed it
	gone     map[types.UID]missed
	before   []*corev1.Pod // of the last list
	// heard: a pod of the API server was listed since the kubelet has started.
	heard bool
}

// missed is what lists have shown of a pod that is gone.
type missed struct {
	since time.Time // the first list without it
	run   time.Time // the same, since the last break
	lists int       // of a whole kubelet with pods of the API server, since the last break
	told  bool      // the kubelet that had listed it has shown that it is gone
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
			n.gone[uid] = missed{}
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
	n.stage, n.stays, n.started, n.heard = silent, !n.seen, n.now, false
	n.seen = false
	n.starts++
	if !n.stays && n.random.IntN(2) == 0 {
		n.stage = nothing
	}
}

// proceed has the kubelet read more: static pods at once, and those of the API server within ten
// minutes.
func (n *node) proceed() {
	since := n.now.Sub(n.started)
	switch {
	case n.stays:
	case n.stage == silent, n.stage == nothing:
		if n.stage++; n.stage == nothing {
			n.started = n.now
		}
	case n.stage == statics && (n.random.IntN(4) == 0 || since > 10*time.Minute):
		n.stage += stage(1 + n.random.IntN(2))
	}
}

// listNow is what the kubelet lists.
func (n *node) listNow() (pods []*corev1.Pod) {
	for _, p := range n.existing {
		static := isStatic(p)
		if n.stage == whole || static && n.stage >= statics || n.stage == partly && n.random.IntN(2) == 0 {
			pods = append(pods, p)
		}
	}
	seen := ""
	if n.marks {
		seen = fmt.Sprint("start ", n.starts)
	}
	return seenAt(seen, pods...)
}

// same reports whether a list shows that it is of the kubelet of the list before.
func (n *node) same(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return n.marks && slices.ContainsFunc(n.before, func(old *corev1.Pod) bool {
			return old.UID == p.UID && maps.Equal(old.Annotations, p.Annotations)
		})
	})
}

// poll asks the kubelet, and tells the oracle and the ledger.
func (n *node) poll(l *Ledger) {
	if n.stage == silent {
		l.Lost()
		n.stays = false
		n.breaks()
		return
	}
	pods := n.listNow()
	api := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !isStatic(p) })
	same := n.same(pods)
	if !same && (n.marks || !api) {
		n.breaks()
	}
	l.Asks()
	l.List(listOf(&n.model, pods...), n.now)
	n.heard, n.before, n.polled = n.heard || api, pods, n.now
	for uid, one := range n.gone {
		if one.since.IsZero() {
			one.since = n.now
			one.told = same && n.listed[uid] == n.starts
		}
		if one.run.IsZero() {
			one.run = n.now
		}
		if n.stage == whole && api {
			one.lists++
		}
		n.gone[uid] = one
	}
	for _, p := range pods {
		n.listed[p.UID] = n.starts
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
	for uid, one := range n.gone {
		one.lists, one.run = 0, time.Time{}
		n.gone[uid] = one
	}
}

// check holds the ledger against the oracle.
func (n *node) check(t *testing.T, l *Ledger) {
	for uid, p := range n.existing {
		if _, listed := n.listed[uid]; listed {
			require.Contains(t, l.held, uid, "the pod %s is there, and was listed", p.Name)
		}
	}
	for uid, one := range n.gone {
		held, isHeld := l.held[uid]
		switch {
		case !isHeld || one.since.IsZero():
		case one.told:
			require.Fail(t, "held", "the kubelet that had the pod %s has shown that it is gone", uid)
		case isStatic(held.pod):
			require.Less(t, n.polled.Sub(one.since), 5*time.Minute, "the pod %s is gone", uid)
			require.True(t, one.run.IsZero() || n.polled.Sub(one.run) < time.Minute, "the pod %s is gone", uid)
		default:
			require.Less(t, one.lists, 2, "the pod %s is gone, and two lists have lacked it", uid)
		}
	}
	if n.stage != silent && n.before != nil {
		require.True(t, n.heard || l.Round("", true).Doubt != nil, "the kubelet has told no pod of the API server, and there is no doubt")
	}
	require.Len(t, l.known, len(l.held))
	require.Subset(t, slices.Collect(maps.Keys(l.held)), slices.Collect(maps.Keys(l.absent)))
}

// TestLedgerOfAKubeletThatRestarts: pods come and go, the kubelet restarts, seen by a failed poll
// or not, and is asked at any time. The ledger never lacks a pod that is there and was listed. It
// has no pod that two lists of a whole kubelet have lacked, or one of the kubelet that had it. It
// doubts each list of a kubelet that has told no pod of the API server since it started.
func TestLedgerOfAKubeletThatRestarts(t *testing.T) {
	for i := range 200 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			n := &node{
				model: model{t: t, random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1_800_000_000, 0)},
				stage: whole, marks: i%4 > 0, seen: true,
				existing: map[types.UID]*corev1.Pod{}, listed: map[types.UID]int{}, gone: map[types.UID]missed{},
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
