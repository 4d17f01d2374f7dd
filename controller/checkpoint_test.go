package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
)

// restart runs a controller with a checkpoint for some time, and returns the keys called.
func (r *rig) restart(t *testing.T, file string, change ...func(*controller.Controller[string])) []string {
	c := r.controller()
	c.Name, c.Checkpoint = "mine", file
	for _, f := range change {
		f(c)
	}
	stop := run(t.Context(), c)
	called := r.calls()
	require.NoError(t, stop())
	return append(called, r.calls()...)
}

// TestARestartCallsWhatDiffers: objects that came, changed or went, and keys that were not done.
func TestARestartCallsWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t, "a", "b", "c", "d", "again", "failing")
		r.set("ns/again", func() error { return controller.After(time.Hour) })
		require.Len(t, r.restart(t, file), 6)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.Equal(t, []string{"ns/again"}, r.restart(t, file), "it was not done")
		r.set("ns/again", nil)
		require.Equal(t, []string{"ns/again"}, r.restart(t, file))
		require.Empty(t, r.restart(t, file))

		a, err := r.pods.Origin().Get("ns", "a")
		require.NoError(t, err)
		r.label(a, "web")
		b, err := r.pods.Origin().Get("ns", "b")
		require.NoError(t, err)
		r.pods.Remove(b)
		d, err := r.pods.Origin().Get("ns", "d")
		require.NoError(t, err)
		r.pods.Remove(d)
		r.create("d")
		r.create("e")
		require.Equal(t, []string{"ns/a", "ns/b", "ns/d", "ns/e"}, r.restart(t, file))
		require.Empty(t, r.restart(t, file))

		r.set("ns/failing", func() error { return errors.New("not now") })
		require.Contains(t, r.restart(t, file, func(c *controller.Controller[string]) { c.Version = "2" }), "ns/failing")
		r.set("ns/failing", nil)
		version2 := func(c *controller.Controller[string]) { c.Version = "2" }
		require.Equal(t, []string{"ns/failing"}, r.restart(t, file, version2))
		require.Len(t, r.restart(t, file), 6, "a full pass for another version")
		require.Empty(t, r.restart(t, file))
		require.Len(t, r.restart(t, file, func(c *controller.Controller[string]) { c.AddAll() }), 6, "it begins with a full pass")
	})
}

// TestAKeyOfManyObjects: a pod that moved while the controller was down concerns both its owners,
// and one that went concerns its last.
func TestAKeyOfManyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t)
		of := func(app string) func(pod) { return func(p pod) { p.Labels = map[string]string{"app": app} } }
		moves := r.create("moves", of("one"))
		goes := r.create("goes", of("three"))
		r.create("stays", of("four"))
		labels := func(c *controller.Controller[string]) {
			c.Feeds = []controller.Feed[string]{controller.From(c.Copies[0].(*informer.Informer[pod]), enqueue.Label[pod]("app"))}
		}
		require.Equal(t, []string{"ns/four", "ns/one", "ns/three"}, r.restart(t, file, labels))
		r.label(moves, "two")
		r.pods.Remove(goes)
		require.Equal(t, []string{"ns/one", "ns/three", "ns/two"}, r.restart(t, file, labels))
		require.Empty(t, r.restart(t, file, labels))
	})
}

// TestADamagedCheckpoint is logged, and every key is called.
func TestADamagedCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t, "a", "b")
		require.Len(t, r.restart(t, file), 2)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text[20:], 0o600))
		var log lines
		c := r.controller()
		c.Name, c.Checkpoint = "mine", file
		stop := run(logr.NewContext(t.Context(), log.logger()), c)
		require.Len(t, r.calls(), 2)
		require.NoError(t, stop())
		require.Contains(t, log.text(), `"The checkpoint is of no use now, and every key is reconciled" "error"="`+file+`: it is not a file of handled keys"`)
		require.Empty(t, r.restart(t, file))
	})
}

// TestNoContentInACheckpoint: it has keys and digests alone.
func TestNoContentInACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t)
		r.create("a", func(p pod) { p.Annotations = map[string]string{"token": "hunter2"}; p.UID = "the-uid" })
		r.set("ns/a", func() error { return errors.New("hunter2") })
		r.restart(t, file)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		require.NotContains(t, string(text), "the-uid")
	})
}

// TestFiftyThousandObjects: of 50,000 objects, 20 have changed while the controller was down.
func TestFiftyThousandObjects(t *testing.T) {
	const all, changed = 50_000, 20
	file := filepath.Join(t.TempDir(), "checkpoint")
	s := newSource()
	for i := range all {
		s.put(fmt.Sprint("pod-", i), "")
	}
	restart := func() (calls int) {
		synctest.Test(t, func(t *testing.T) {
			pods := informer.New(s)
			c := &controller.Controller[string]{
				Reconcile:  func(context.Context, string) error { calls++; return nil },
				Feeds:      []controller.Feed[string]{controller.For(pods)},
				Copies:     []controller.Runner{pods},
				Name:       "mine",
				Checkpoint: file,
			}
			require.NoError(t, run(t.Context(), c)())
		})
		s.leave()
		return calls
	}
	require.Equal(t, all, restart())
	for i := range changed {
		s.put(fmt.Sprint("pod-", i*100), "changed")
	}
	require.Equal(t, changed, restart())
	require.Zero(t, restart())
}

// TestDoneWaitsForTheFeeds: a call may read a change that no feed was told yet. If the process is
// killed then, and the change is taken back, the file must not say that the key is done.
func TestDoneWaitsForTheFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t, "a")
		hold := make(chan struct{})
		pods := informer.New(r.pods.ListerWatcher())
		c := &controller.Controller[string]{
			Reconcile: r.reconcile, Copies: []controller.Runner{pods}, Name: "mine", Checkpoint: file, Workers: 2,
			Feeds: []controller.Feed[string]{controller.From(pods, func(p pod) []string {
				if p.Name == "slow" {
					<-hold
				}
				return []string{p.Name}
			})},
		}
		stop := run(t.Context(), c)
		require.Equal(t, []string{"a"}, r.calls())
		r.create("slow")
		synctest.Wait() // else the feed may be told of both at once, and of b first
		r.create("b")
		c.Add("b")
		require.Equal(t, []string{"b"}, r.calls(), "the copy has it")
		text := func() string {
			time.Sleep(time.Second)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			return string(text)
		}
		require.Regexp(t, `begun "b"\n$`, text())
		close(hold)
		require.Regexp(t, `[0-9a-f]{32},"[0-9]+" "b"\n`, text())
		require.Equal(t, []string{"b", "slow"}, r.calls())
		require.NoError(t, stop())
	})
}

// TestANewBuildIsAnotherVersion: the same file that runs again calls what differs, and another one
// everything. It runs the test's program, and a copy of it that differs in its last byte.
func TestANewBuildIsAnotherVersion(t *testing.T) {
	const checkpoint = "TRIBUTARY_TEST_CHECKPOINT"
	if file := os.Getenv(checkpoint); file != "" {
		calls := 0
		synctest.Test(t, func(t *testing.T) {
			s := newSource()
			s.put("a", "")
			s.put("b", "")
			pods := informer.New(s)
			c := &controller.Controller[string]{
				Reconcile: func(context.Context, string) error { calls++; return nil },
				Feeds:     []controller.Feed[string]{controller.For(pods)},
				Copies:    []controller.Runner{pods}, Name: "mine", Checkpoint: file,
			}
			require.NoError(t, run(t.Context(), c)())
		})
		fmt.Printf("%d calls\n", calls)
		return
	}
	first, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(first)
	require.NoError(t, err)
	next := filepath.Join(t.TempDir(), "next")
	require.NoError(t, os.WriteFile(next, append(program, 0), 0o700))
	file := filepath.Join(t.TempDir(), "checkpoint")
	for i, row := range []struct {
		program, want string
	}{{first, "2 calls"}, {first, "0 calls"}, {next, "2 calls"}, {next, "0 calls"}} {
		cmd := exec.CommandContext(t.Context(), row.program, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), checkpoint+"="+file)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), row.want, "run %d", i+1)
	}
}

// TestTwoControllersOfOneFile: the second is refused, so that the first one's keys are safe.
func TestTwoControllersOfOneFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "checkpoint")
		r := newRig(t, "a", "b")
		c := r.controller()
		c.Name, c.Checkpoint = "mine", file
		r.set("ns/a", func() error { return errors.New("not now") })
		stop := run(t.Context(), c)
		second := r.controller()
		second.Name, second.Checkpoint = "other", file
		require.EqualError(t, second.Run(t.Context()), "controller: Checkpoint: "+file+": it is in use: give each writer a path of its own")
		require.NoError(t, stop())
		r.calls()
		third := r.controller()
		third.Name, third.Checkpoint = "other", file
		require.EqualError(t, third.Run(t.Context()), "controller: Checkpoint: "+file+` is of the controller "mine", and not of "other": give each a file of its own`)
		r.set("ns/a", nil)
		require.Equal(t, []string{"ns/a"}, r.restart(t, file))
	})
}

// TestARestoredEtcdGivesVersionsAnew: while the controller is down, its server goes back, and an
// object gets another content under the version that was done.
func TestARestoredEtcdGivesVersionsAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	s := newSource()
	s.put("a", "one")
	s.put("b", "one")
	backup := maps.Clone(s.pods)
	s.put("a", "two") // version 3
	var called []string
	restart := func() []string {
		called = nil
		synctest.Test(t, func(t *testing.T) {
			pods := informer.New(s)
			c := &controller.Controller[string]{
				Reconcile: func(_ context.Context, key string) error { called = append(called, key); return nil },
				Feeds:     []controller.Feed[string]{controller.For(pods)},
				Copies:    []controller.Runner{pods}, Name: "mine", Checkpoint: file,
			}
			require.NoError(t, run(t.Context(), c)())
		})
		s.leave()
		return called
	}
	require.Len(t, restart(), 2)
	s.put("b", "two") // version 4
	require.Equal(t, []string{"b"}, restart())
	s.history, s.pods = s.history[:2], backup
	s.put("a", "three") // version 3 again
	require.ElementsMatch(t, []string{"a", "b"}, restart())
	require.Empty(t, restart())
}
