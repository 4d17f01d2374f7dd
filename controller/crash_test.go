package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
)

// TestNoCrashLosesAKey: a controller is killed at any step of its loop and started again with its
// checkpoint, some times over, while pods come, change their owner and go, also while it is down.
// Some calls hang for ever, leases are lost, and a start may be of another build. In the end the
// effect for each key, of a pod and of an owner of pods, is that of the last state.
// TRIBUTARY_SEEDS=n runs n seeds, and TRIBUTARY_SIM_SEED=n that one.
func TestNoCrashLosesAKey(t *testing.T) {
	seeds := 200
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SEEDS")); err == nil {
		seeds = n
	}
	one, err := strconv.ParseUint(os.Getenv("TRIBUTARY_SIM_SEED"), 10, 64)
	if err == nil {
		seeds = 100 // goroutines are not ordered by the seed
	}
	folder := t.TempDir()
	kills, calls, hung, lost := 0, 0, 0, 0
	for range seeds {
		seed := rand.Uint64()
		if err == nil {
			seed = one
		}
		s := &sim{
			source: newSource(), random: rand.New(rand.NewPCG(seed, 1)), effects: map[string]string{},
			file: filepath.Join(folder, strconv.FormatUint(seed, 10)),
		}
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("replay it with TRIBUTARY_SIM_SEED=%d", seed)
				}
			}()
			s.play(t)
		}()
		kills, calls, hung, lost = kills+s.kills, calls+s.calls, hung+s.hung, lost+s.lost
		_ = os.Remove(s.file)
	}
	t.Logf("%d seeds, %d kills, %d calls, %d calls that hang, %d lost leases", seeds, kills, calls, hung, lost)
	require.True(t, kills > seeds && hung > 0 && lost > 0 || err == nil)
}

// sim is a world, of which the source, the effects and the file outlive the controller.
type sim struct {
	source *source
	file   string

	mu      sync.Mutex // guards the fields below
	random  *rand.Rand
	effects map[string]string // by key, the state that the last call of it saw
	alive   bool              // effects of a controller that was killed are none
	saved   []byte            // the file when it was killed
	killIn  int               // calls until it is killed there
	begun   map[string]bool   // keys that may be begun in the file before a call
	kills   int
	calls   int
	calm    bool // no call fails
	build   string
	over    chan struct{} // closed when the process has ended: calls that hang return
	hung    int
	lost    int
}

func (s *sim) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func (s *sim) play(t *testing.T) {
	for range 1 + s.intn(4) {
		s.build = fmt.Sprint("build ", s.intn(4)/3)
		s.run(t, true)
		for range s.intn(4) { // while it is down
			s.change()
		}
	}
	s.calm = true
	s.run(t, false)
	want := map[string]string{}
	now := s.source.now()
	for key := range s.effects {
		want[key] = ""
	}
	for name, owner := range now {
		want["pod/"+name], want["owner/"+owner] = "", ""
	}
	for key := range want {
		want[key] = stateOf(key, now, s.source.version)
	}
	for key, state := range want {
		if state == "" && s.effects[key] == "" {
			delete(want, key) // never seen
			delete(s.effects, key)
		}
	}
	require.Equal(t, want, s.effects)
	calls := s.calls
	s.run(t, false)
	require.Equal(t, calls, s.calls, "all is done")
}

// stateOf is the state of a key, in the versions of the pods that concern it.
func stateOf(key string, owners map[string]string, version func(name string) string) string {
	kind, name, _ := strings.Cut(key, "/")
	var all []string
	for p, owner := range owners {
		if kind == "pod" && p == name || kind == "owner" && owner == name {
			all = append(all, p+"@"+version(p))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (s *sim) change() {
	name := fmt.Sprint("p", s.intn(4))
	if _, there := s.source.now()[name]; there && s.intn(2) == 0 {
		s.source.remove(name)
	} else {
		s.source.put(name, fmt.Sprint("o", s.intn(3)))
	}
}

// run runs a controller until it is killed or, in the end, has nothing to do.
func (s *sim) run(t *testing.T, kill bool) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pods := informer.New(s.source)
		c := &controller.Controller[string]{
			Feeds: []controller.Feed[string]{
				controller.From(pods, func(p pod) []string { return []string{"pod/" + p.Name} }),
				controller.From(pods, func(p pod) []string { return []string{"owner/" + p.Labels["of"]} }),
			},
			Copies: []controller.Runner{pods}, Workers: 1 + s.intn(3), Name: "mine", Checkpoint: s.file, Version: s.build,
			Reconcile: func(_ context.Context, key string) error { return s.reconcile(pods, key, cancel) },
		}
		s.alive, s.saved, s.killIn, s.begun = true, nil, -1, map[string]bool{}
		if text, err := os.ReadFile(s.file); err == nil {
			// Another build has every key begun when it opens the file.
			other := !strings.Contains(string(text), fmt.Sprintf(`"Version":%q`, s.build))
			for line := range strings.Lines(string(text)) {
				step, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
				if key, err := strconv.Unquote(quoted); err == nil {
					s.begun[key] = step == "begun" || other
				}
			}
		}
		ended := make(chan error, 1)
		s.over = make(chan struct{})
		lease, lose := context.WithCancelCause(t.Context())
		defer lose(nil)
		c.BaseContext = func() context.Context { return lease }
		if kill && s.intn(3) > 0 {
			s.killIn = s.intn(12)
		}
		go func() { ended <- c.Run(ctx) }()
		if kill {
			for range s.intn(12) {
				time.Sleep(time.Duration(s.intn(20)) * time.Millisecond)
				s.change()
			}
			switch s.intn(5) {
			case 0: // it is stopped in good order
			case 1:
				lose(errLost)
				s.lost++
			default:
				s.kill("")
			}
		} else {
			time.Sleep(time.Hour)
		}
		cancel()
		if err := <-ended; err != nil {
			require.Regexp(t, "BaseContext: the lease is lost|parts have not returned", err.Error())
		}
		s.mu.Lock()
		s.alive = false // what still runs has no effect any more
		s.mu.Unlock()
		close(s.over)
		if s.saved != nil {
			require.NoError(t, os.WriteFile(s.file, s.saved, 0o600))
		}
	})
	s.source.leave()
}

// kill ends the controller, as far as the world can tell. With the key of the call that was about
// to begin, its line is half written.
func (s *sim) kill(beginning string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killLocked(beginning)
}

func (s *sim) killLocked(beginning string) {
	if !s.alive {
		return
	}
	s.alive = false
	s.kills++
	text, err := os.ReadFile(s.file)
	if err != nil {
		return // before it was first written
	}
	if line := "begun " + strconv.Quote(beginning) + "\n"; strings.HasSuffix(string(text), line) {
		text = text[:len(text)-1-s.random.IntN(len(line))]
	}
	s.saved = text
}

var (
	errRefused = errors.New("refused")
	errLost    = errors.New("the lease is lost")
)

func (s *sim) reconcile(pods *informer.Informer[pod], key string, stop func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killIn--
	where := -1
	if s.killIn == 0 {
		where = s.random.IntN(3)
	}
	if where == 0 {
		beginning := key
		if s.begun[key] {
			beginning = "" // the last line may be that of another call
		}
		s.killLocked(beginning)
		stop()
	}
	s.begun[key] = true
	now, owners := pods.Snapshot(), map[string]string{}
	for name, p := range now.All() {
		owners[name] = p.Labels["of"]
	}
	seen := stateOf(key, owners, func(name string) string { p, _ := now.Get(name); return p.ResourceVersion })
	pause := time.Duration(s.random.IntN(10)) * time.Millisecond
	s.mu.Unlock()
	time.Sleep(pause)
	s.mu.Lock()
	if where == 1 {
		s.killLocked("")
		stop()
	}
	result := s.random.IntN(8)
	if s.calm {
		result = 7
	}
	if !s.calm && s.random.IntN(30) == 0 {
		s.hung++
		s.mu.Unlock()
		<-s.over // whatever its context says
		s.mu.Lock()
		return nil
	}
	if result == 0 {
		return errRefused // without an effect
	}
	if s.alive {
		s.effects[key] = seen
		s.calls++
	}
	if where == 2 {
		s.killLocked("")
		stop()
	}
	switch result {
	case 1:
		return errRefused
	case 2:
		return controller.After(time.Duration(s.random.IntN(100)) * time.Millisecond)
	case 3:
		panic("a fault")
	}
	return nil
}
