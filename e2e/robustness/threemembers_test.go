package robustness_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/reflector"
)

const (
	clientsOfMembers = 3 // two servers of ours, and the readers of the storage
	progressEvery    = 500 * time.Millisecond
	storageReader    = "storage" // the beginning of the names of readers without a server of ours
)

// TestThreeMembers: two servers of ours are on an etcd of three members, which are killed, frozen,
// cut off, compacted, filled up and ended at failpoints, while leaders move and clocks jump. In
// every second round the servers are left behind by compactions; the package's documentation says
// who is judged then.
//
// TRIBUTARY_ROBUSTNESS_FAULTS sets how many faults the members get, over as many rounds as that
// takes. A round is made again with its seed.
func TestThreeMembers(t *testing.T) {
	wanted := 1
	if text := os.Getenv("TRIBUTARY_ROBUSTNESS_FAULTS"); text != "" {
		var err error
		wanted, err = strconv.Atoi(text)
		require.NoError(t, err, "TRIBUTARY_ROBUSTNESS_FAULTS")
	}
	seed := seedOf(t)
	total, faults, relistsOfAll := map[string]int{}, 0, 0
	for round := 0; round < 2 || faults < wanted; round++ {
		relists := seed%2 == 1
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newThreeMembers(t, seed, relists)
			acknowledged := judgeSeed(t, s.server, seed, length(t, 5*time.Second), 150*time.Millisecond)
			counted, relisted := s.counts()
			require.False(t, !relists && relisted > 0, "the servers had to list anew %d times", relisted)
			relistsOfAll += relisted
			struck := 0
			for _, kind := range kinds {
				require.Positive(t, counted[kind], "no %s", kind)
				struck += counted[kind]
			}
			require.Greater(t, acknowledged, struck, "too few writes were acknowledged")
			faults += struck
			for name, n := range counted {
				total[name] += n
			}
			t.Logf("%d writes acknowledged, servers listed anew %d times: %v", acknowledged, relisted, counted)
		})
		if t.Failed() {
			break
		}
		seed++
	}
	// A server that is quick, or a machine that is slow, can escape the compactions of a round.
	require.False(t, faults >= 200 && relistsOfAll == 0, "no server ever had to list anew")
	t.Logf("%d faults of members: %v", faults, total)
}

// threeMembers are an etcd of three members, servers of ours on it, and all that is broken.
type threeMembers struct {
	*server
	*members
	random   *rand.Rand
	clients  [clientsOfMembers][size]*netfault.Proxy // from each client to each member
	operator *clientv3.Client
	written  *followed
	filling  sync.Mutex // held while members are filled up on purpose

	mu      sync.Mutex // guards what follows
	serving [2]*ours
	expired int            // how often servers before these had to list anew
	counted map[string]int // faults by kind, and failpoints by name
}

func newThreeMembers(t *testing.T, seed uint64, relists bool) *threeMembers {
	t.Helper()
	s := &threeMembers{members: startMembers(t), random: rand.New(rand.NewPCG(seed, 1)), counted: map[string]int{}}
	for client := range s.clients {
		for i, m := range s.all {
			s.clients[client][i] = netfault.Listen(t, m.client)
		}
	}
	s.operator = connectTo(t, s.addresses()...)
	s.written = followEtcd(t, s.addresses()...)
	start := func(n int) *ours {
		started := startOurs(t, s.connect(n), etcd.WithProgressEvery(progressEvery))
		s.mu.Lock()
		defer s.mu.Unlock()
		if before := s.serving[n]; before != nil {
			s.expired += before.content.Status().Lists[reflector.Expired]
		}
		s.serving[n] = started
		return started
	}
	servers := []*ours{start(0), start(1)}
	s.server = behindProxies(t, "http://"+servers[0].address)
	s.persisted, s.relists = s.written.persisted, relists
	s.faults = append(s.faultsOfMembers(), moving(s.server, servers, start)...)
	s.more = func(r *readers) {
		client := s.connect(2)
		source := func() *etcd.Source[object] {
			return etcd.New[corev1.ConfigMap](client, registry, etcd.WithProgressEvery(progressEvery))
		}
		r.follow(storageReader, "", source(), r.options()...)
		r.follow(storageReader+", in pages", "", source(), r.options(reflector.WithPageSize(4))...)
	}
	s.mend = func() {
		s.healthy()
		for n := range servers { // which ends writes whose clients have given up
			servers[n].stop()
			servers[n] = start(n)
		}
		s.reads.Switch(servers[0].address)
	}
	s.compactEverySecond()
	return s
}

// connect makes the client of a number, behind its proxies.
func (s *threeMembers) connect(client int) *clientv3.Client {
	var addresses []string
	for _, proxy := range s.clients[client] {
		addresses = append(addresses, proxy.Address())
	}
	return connectTo(s.t, addresses...)
}

func (s *threeMembers) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[kind]++
}

// counts are the faults so far, and how often servers had to list anew.
func (s *threeMembers) counts() (faults map[string]int, relists int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	relists = s.expired
	for _, one := range s.serving {
		relists += one.content.Status().Lists[reflector.Expired]
	}
	return maps.Clone(s.counted), relists
}

// read is the revision up to which both servers have read.
func (s *threeMembers) read() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := int64(math.MaxInt64)
	for _, one := range s.serving {
		revision = min(revision, int64(number(one.content.Status().ResourceVersion)))
	}
	return revision
}

// compact forgets what the servers have read, or all that was written if they may list anew.
func (s *threeMembers) compact(ctx context.Context, options ...clientv3.CompactOption) error {
	revision := s.written.last()
	if !s.relists {
		revision = min(revision, s.read())
	}
	_, err := s.operator.Compact(ctx, revision, options...)
	return err
}

// everySecond are the compactions in the background, which are not counted among the faults.
const everySecond = "compactions in the background"

// compactEverySecond compacts in the background, and makes room if members are full again.
func (s *threeMembers) compactEverySecond() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			within, done := context.WithTimeout(ctx, attempt)
			if s.compact(within) == nil { // the members may be down
				s.count(everySecond)
			}
			done()
			s.makeRoomAgain(ctx)
		}
	})
	s.t.Cleanup(func() { cancel(); running.Wait() })
}
