package robustness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tributary-go/tributary/e2e/netfault"
)

// The kinds of faults that are counted.
const (
	kills       = "kills"
	freezes     = "freezes"
	cuts        = "cuts"
	moves       = "leader moves"
	compactions = "compactions"
	fullDisks   = "full disks"
	jumps       = "clock jumps"
	failpoints  = "failpoints"
)

// filler is the key of writes that are no object's.
const filler = "/filler/"

var kinds = []string{kills, freezes, cuts, moves, compactions, fullDisks, jumps, failpoints}

// faultsOfMembers break the members. Each begins with all members running, and leaves them so.
func (s *threeMembers) faultsOfMembers() []fault {
	all := []fault{}
	add := func(kind, name string, do func() bool) {
		all = append(all, fault{kind + ": " + name, func() {
			if do() {
				s.count(kind)
			}
			s.revive()
		}})
	}
	add(kills, "one member", func() bool { return s.kill(s.any()) })
	add(kills, "the leader", func() bool { return s.kill(s.leaderOrAny()) })
	add(kills, "two or all members", func() bool {
		all := slices.Clone(s.all)
		s.random.Shuffle(size, func(i, j int) { all[i], all[j] = all[j], all[i] })
		return s.kill(all[:2+s.random.IntN(2)]...)
	})
	add(freezes, "one member", func() bool { return s.freeze(s.any()) })
	add(freezes, "the leader", func() bool { return s.freeze(s.leaderOrAny()) })
	add(cuts, "the leader from its peers", func() bool { return s.cut(s.linksOf(s.leaderOrAny().number), healed) })
	add(cuts, "one member from its peers", func() bool { return s.cut(s.linksOf(s.random.IntN(size)), healed) })
	add(cuts, "one member from another", func() bool {
		a := s.random.IntN(size)
		b := (a + 1 + s.random.IntN(size-1)) % size
		return s.cut([]*netfault.Proxy{s.links[a][b], s.links[b][a]}[:1+s.random.IntN(2)], healed)
	})
	add(cuts, "a client from one member", func() bool {
		client := s.clients[s.random.IntN(clientsOfMembers)]
		return s.cut([]*netfault.Proxy{client[s.random.IntN(size)]}, healedOrDead)
	})
	add(cuts, "a client from all members", func() bool {
		client := s.clients[s.random.IntN(clientsOfMembers)]
		return s.cut(client[:], healedOrDead)
	})
	if s.relists {
		add(compactions, "while a server is cut off", s.leaveBehind)
	}
	add(moves, "to another member", s.moveLeader)
	add(compactions, "of all that may go", s.compactNow)
	add(fullDisks, "files cannot grow", s.fillFiles)
	add(fullDisks, "the quota is used up", s.fillQuota)
	add(jumps, "one member", func() bool { return s.jump(s.any()) })
	add(jumps, "all members", func() bool { return s.jump(s.all...) })
	add(failpoints, "panic", s.panicAtOnce)
	add(failpoints, "panic in a compaction or defragmentation", s.panicInUpkeep)
	add(failpoints, "panic in a snapshot", s.panicInSnapshot)
	add(failpoints, "delay", s.delay)
	return all
}

func (s *threeMembers) any() *member { return s.all[s.random.IntN(size)] }

func (s *threeMembers) leaderOrAny() *member {
	if leader := s.leader(); leader != nil {
		return leader
	}
	return s.any()
}

// pause waits for a random time up to d.
func (s *threeMembers) pause(d time.Duration) { pass(time.Duration(s.random.Int64N(int64(d)))) }

// kill is kill -9. The members are away for a while.
func (s *threeMembers) kill(all ...*member) bool {
	for _, m := range all {
		m.Kill()
	}
	s.pause(time.Second)
	for _, m := range all {
		m.Start()
	}
	return true
}

func (s *threeMembers) freeze(m *member) bool {
	m.freeze()
	s.pause(1500 * time.Millisecond)
	m.thaw()
	return true
}

// How a cut ends: what was held back arrives, or is lost with its connection.
var (
	healed = []func(*netfault.Proxy){func(*netfault.Proxy) {}, (*netfault.Proxy).Cut, (*netfault.Proxy).Reset}
	// Between members no connection stays open for good without an answer, as it does for clients:
	// etcd 3.7.3 would not notice. Its transport for streams sets Dial, which has the time limits,
	// and DialContext, which net/http prefers. Such a member has no leader from then on.
	healedOrDead = append(slices.Clone(healed), (*netfault.Proxy).Blackhole)
)

// cut lets nothing through for a while.
func (s *threeMembers) cut(links []*netfault.Proxy, ends []func(*netfault.Proxy)) bool {
	for _, link := range links {
		link.Pause()
	}
	s.pause(2 * time.Second)
	end := oneOf(s.random, ends)
	for _, link := range links {
		end(link)
		link.Resume()
	}
	return true
}

// insist tries until it succeeds or there is no time. A member that has ended late is started.
func (s *threeMembers) insist(do func(context.Context) error) bool {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); pass(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		err := do(ctx)
		cancel()
		if err == nil {
			return true
		}
		s.revive()
	}
	return false
}

var errNoLeader = errors.New("there is no leader")

func (s *threeMembers) moveLeader() bool {
	return s.insist(func(ctx context.Context) error {
		from := s.leader()
		if from == nil {
			return errNoLeader
		}
		to := s.all[(from.number+1+s.random.IntN(size-1))%size]
		_, err := from.admin.MoveLeader(ctx, uint64(to.id))
		return err
	})
}

// compactNow returns when the history is off the disk.
func (s *threeMembers) compactNow() bool {
	return s.insist(func(ctx context.Context) error { return s.compact(ctx, clientv3.WithCompactPhysical()) })
}

// leaveBehind has each server of ours come back when what it has not read is forgotten. While the
// server that the writers use is cut off, there may be nothing to forget.
func (s *threeMembers) leaveBehind() (forgotten bool) {
	for _, n := range s.random.Perm(len(s.serving)) {
		links := s.clients[n]
		for _, link := range links {
			link.Cut()
			link.Pause()
		}
		pass(500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		forgotten = s.compact(ctx, clientv3.WithCompactPhysical()) == nil || forgotten
		cancel()
		for _, link := range links {
			link.Resume()
		}
	}
	return forgotten
}

// fillFiles fails the writes of a member past a size that it is about to reach: in the middle of
// its log, or of its database. The member gives up.
func (s *threeMembers) fillFiles() bool {
	m := s.any()
	const block = 4096
	bytes := block * (1 + s.random.IntN(16))
	if s.insist(func(context.Context) error { return m.limitFiles(bytes) }) && m.ends(5*time.Second) {
		return true
	}
	m.Kill() // the limit ends with it
	return false
}

// fillQuota writes until the members refuse to, and does then what an operator has to.
func (s *threeMembers) fillQuota() bool {
	s.filling.Lock()
	defer s.filling.Unlock()
	n := 0
	full := s.insist(func(ctx context.Context) error {
		for ; ; n++ {
			_, err := s.operator.Put(ctx, fmt.Sprint(filler, n), strings.Repeat("x", quota/12))
			if errors.Is(err, rpctypes.ErrNoSpace) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	s.pause(500 * time.Millisecond)
	require.True(s.t, s.insist(func(ctx context.Context) error {
		_, err := s.operator.Delete(ctx, filler, clientv3.WithPrefix())
		return err
	}), "nothing can be deleted from members that are full")
	require.True(s.t, s.insist(s.makeRoom), "the members stay full")
	return full
}

// makeRoom is an operator's work on members that are full.
func (s *threeMembers) makeRoom(ctx context.Context) error {
	_ = s.compact(ctx, clientv3.WithCompactPhysical()) // there may be nothing left to forget
	for _, m := range s.all {
		if _, err := m.admin.Defragment(ctx, m.client); err != nil {
			return err
		}
	}
	if _, err := s.operator.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return err
	}
	_, err := s.operator.Put(ctx, filler, "")
	return err
}

// makeRoomAgain is for an alarm that comes back after room was made, as from a member that was away
// and does the writes of its log again. No member takes a write until an operator acts.
func (s *threeMembers) makeRoomAgain(ctx context.Context) {
	if !s.filling.TryLock() {
		return
	}
	defer s.filling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	full, err := s.operator.AlarmList(ctx)
	if err == nil && slices.ContainsFunc(full.Alarms, func(a *etcdserverpb.AlarmMember) bool { return a.Alarm == etcdserverpb.AlarmType_NOSPACE }) {
		_ = s.makeRoom(ctx) // if a member is down, the next second will do
	}
}

func (s *threeMembers) jump(all ...*member) bool {
	by := []time.Duration{2 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 3650 * 24 * time.Hour}[s.random.IntN(5)]
	if s.random.IntN(2) == 0 {
		by = -by
	}
	for _, m := range all {
		if !s.insist(func(context.Context) error { return m.setClock(by) }) {
			return false
		}
	}
	return true
}

// Failpoints by what makes a member come to them.
var (
	inWrites = []string{
		"raftBeforeSave", "raftAfterSave", "raftBeforeAdvance", "walBeforeSync", "walAfterSync", "beforeApplyOneEntryNormal",
		"beforeStartDBTxn", "afterStartDBTxn", "beforeWritebackBuf", "afterWritebackBuf", "beforeBucketPut",
		"beforeCommit", "afterCommit", "commitBeforePreCommitHook", "commitAfterPreCommitHook",
	}
	inLeaders     = []string{"raftBeforeLeaderSend"}
	inFollowers   = []string{"raftBeforeFollowerSend"}
	inCompactions = []string{
		"compactBeforeCommitScheduledCompact", "compactAfterCommitScheduledCompact", "compactAfterAcquiredBatchTxLock",
		"compactBeforeSetFinishedCompact", "compactAfterSetFinishedCompact", "compactBeforeCommitBatch", "compactAfterCommitBatch",
	}
	inDefragmentations = []string{"defragBeforeCopy", "defragBeforeRename"}
	inSnapshots        = []string{
		"raftBeforeSaveSnap", "raftAfterSaveSnap", "raftBeforeApplySnap", "raftAfterApplySnap", "raftAfterWALRelease",
		"applyBeforeOpenSnapshot", "applyAfterOpenSnapshot",
	}
	delayed = []string{"raftBeforeSave", "raftAfterSave", "walBeforeSync", "beforeApplyOneEntryNormal", "beforeCommit", "beforeSendWatchResponse"}
)

func oneOf[E any](random *rand.Rand, all []E) E { return all[random.IntN(len(all))] }

// ends reports whether a member ends within d.
func (m *member) ends(d time.Duration) bool {
	select {
	case <-m.Ended():
		return true
	case <-time.After(d):
		return false
	}
}

// arm sets a failpoint, as soon as the member has started.
func (s *threeMembers) arm(m *member, point, terms string) {
	s.t.Helper()
	require.True(s.t, s.insist(func(context.Context) error { return m.arm(point, terms) }), "there is no failpoint %s", point)
}

// dies reports whether a member comes to a failpoint and ends there.
func (s *threeMembers) dies(m *member, point string, trigger func()) bool {
	s.arm(m, point, "panic")
	trigger()
	if !m.ends(3 * time.Second) {
		_ = m.arm(point, "off") // it may end now
		return false
	}
	s.count(point)
	s.pause(500 * time.Millisecond)
	return true
}

func (s *threeMembers) panicAtOnce() bool {
	m := s.any()
	points := slices.Concat(inWrites, inFollowers)
	if m == s.leader() {
		points = slices.Concat(inWrites, inLeaders)
	}
	return s.dies(m, oneOf(s.random, points), func() {})
}

func (s *threeMembers) panicInUpkeep() bool {
	m := s.any()
	if s.random.IntN(3) > 0 { // there is a compaction every second
		return s.dies(m, oneOf(s.random, inCompactions), func() {})
	}
	return s.dies(m, oneOf(s.random, inDefragmentations), func() {
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		defer cancel()
		_, _ = m.admin.Defragment(ctx, m.client)
	})
}

// panicInSnapshot cuts a follower off until the log that it lacks is forgotten. For 30 s after each
// snapshot that a leader has sent it forgets nothing, so that this does not always succeed.
func (s *threeMembers) panicInSnapshot() bool {
	leader := s.leaderOrAny()
	m := s.all[(leader.number+1+s.random.IntN(size-1))%size]
	return s.dies(m, oneOf(s.random, inSnapshots), func() {
		links := s.linksOf(m.number)
		for _, link := range links {
			link.Pause()
		}
		s.insist(func(ctx context.Context) error {
			for range snapshotAfter + catchUp {
				if _, err := leader.admin.Put(ctx, filler, ""); err != nil {
					return err
				}
			}
			return nil
		})
		for _, link := range links {
			link.Cut() // else its log would arrive from the connections
			link.Resume()
		}
	})
}

// delay holds a member up at one place, over and over.
func (s *threeMembers) delay() bool {
	m, point := s.any(), oneOf(s.random, delayed)
	s.arm(m, point, "sleep(200)")
	s.pause(1500 * time.Millisecond)
	reached := m.reached(point)
	s.arm(m, point, "off")
	if reached > 0 {
		s.count(point)
	}
	return reached > 0
}
