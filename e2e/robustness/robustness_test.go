package robustness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // every failure here is made on purpose
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// length is how long a server is written to and broken; TRIBUTARY_ROBUSTNESS, such as 10m, sets it.
func length(t *testing.T, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("TRIBUTARY_ROBUSTNESS")
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "TRIBUTARY_ROBUSTNESS")
	return d
}

// seedOf is a random seed, or that of TRIBUTARY_ROBUSTNESS_SEED.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TRIBUTARY_ROBUSTNESS_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "TRIBUTARY_ROBUSTNESS_SEED")
	}
	t.Logf("seed %d", seed)
	return seed
}

func number(version string) uint64 {
	v, _ := strconv.ParseUint(version, 10, 64)
	return v
}

func TestFake(t *testing.T) {
	judge(t, theFake(t, 300), length(t, 12*time.Second), 100*time.Millisecond)
}
func TestWatchCache(t *testing.T) {
	judge(t, theWatchCache(t), length(t, 12*time.Second), 100*time.Millisecond)
}
func TestAPIServer(t *testing.T) {
	judge(t, theAPIServer(t), length(t, 50*time.Second), time.Second)
}

const (
	writers     = 4
	writesEvery = 5 * time.Millisecond
	listsEvery  = 50 * time.Millisecond
	judging     = 2 * time.Minute // what porcupine may take; it takes seconds
)

// judge has a server written to, read and broken for a while, and both judges say that all is well.
// Then it damages what was told, and both must name the damage.
func judge(t *testing.T, s *server, d, between time.Duration) {
	t.Helper()
	judgeSeed(t, s, seedOf(t), d, between)
}

// judgeSeed is judge with a seed of the caller's. It returns how many writes were acknowledged.
func judgeSeed(t *testing.T, s *server, seed uint64, d, between time.Duration) (acknowledged int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	r := startReaders(t, s.readsConfig, s.liveness)
	if s.more != nil {
		s.more(r)
	}
	log := &journal{began: time.Now()}
	s.writes.Delay(5 * time.Millisecond) // so that a cut finds writes under way
	struck := work(t, s, log, random, d, between)
	if s.mend != nil {
		s.mend()
	}
	pass(time.Second) // a server may finish what its client has given up
	run := &robustness.Run{Persisted: s.persisted(), Operations: log.operations}
	require.NotEmpty(t, run.Persisted)
	s.reads.Cut()
	if s.relists {
		r.agree(stateAfter(run.Persisted))
	} else {
		r.await(run.Persisted)
	}
	for _, reader := range r.histories() {
		if !s.relists || strings.HasPrefix(reader.Reader, storageReader) {
			run.Readers = append(run.Readers, reader)
		} else if relisting(reader) {
			require.NoError(t, run.JudgeRelisting(reader, judging), "%s, seed %d", reader.Reader, seed)
		}
	}
	streams, events, bookmarks := 0, 0, 0
	var each strings.Builder
	for _, reader := range run.Readers {
		told, marks := count(reader)
		fmt.Fprintf(&each, "\n%s: %d streams, %d events, %d bookmarks", reader.Reader, len(reader.Streams), told, marks)
		streams, events, bookmarks = streams+len(reader.Streams), events+told, bookmarks+marks
		require.NoError(t, run.Check(reader), "seed %d", seed)
	}
	began := time.Now()
	require.NoError(t, run.Judge(judging), "seed %d", seed)
	t.Logf("%d writes persisted, %d operations of which %d without an answer, %d refused; %d readers, %d streams, %d events, %d bookmarks; judged in %s%s\nfaults: %v",
		len(run.Persisted), len(run.Operations), log.unknown, log.refused, len(run.Readers), streams, events, bookmarks, time.Since(began).Round(time.Millisecond), each.String(), struck)
	require.Positive(t, bookmarks, "there was nothing to judge bookmarks by")
	damage(t, run)
	for _, o := range run.Operations {
		if o.Listed == nil && !o.Unknown {
			acknowledged++
		}
	}
	return acknowledged
}

func count(r robustness.Reader) (events, bookmarks int) {
	for _, s := range r.Streams {
		for _, c := range s.Told {
			if c.Type == watch.Bookmark {
				bookmarks++
			} else {
				events++
			}
		}
	}
	return events, bookmarks
}

// work writes and breaks for d. All faults strike once at least, however long that takes.
func work(t *testing.T, s *server, log *journal, random *rand.Rand, d, between time.Duration) map[string]int {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	writes, lists, bookmarks := time.NewTicker(writesEvery), time.NewTicker(listsEvery), time.NewTicker(200*time.Millisecond)
	defer writes.Stop()
	defer lists.Stop()
	defer bookmarks.Stop()
	for id := range writers + 1 {
		config := rest.CopyConfig(s.configOf(id))
		client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
		require.NoError(t, err)
		w := &writer{id: 1 + id, client: client.(*rest.RESTClient), random: rand.New(rand.NewPCG(random.Uint64(), 0)), log: log}
		if id < writers {
			working.Go(func() { w.run(ctx, writes.C) })
		} else {
			working.Go(func() { w.list(ctx, lists.C) })
		}
	}
	if s.bookmark != nil {
		working.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-bookmarks.C:
					s.bookmark()
				}
			}
		})
	}
	struck := map[string]int{}
	pass(time.Second)
	faults := slices.Concat(s.faults, s.network())
	for began := time.Now(); time.Since(began) < d || len(struck) < len(faults); {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			f.do()
			struck[f.name]++
			pass(between + rand.N(between))
			if time.Since(began) > d && len(struck) == len(faults) {
				break
			}
		}
	}
	return struck
}

// damages are what a judge must name: what etcd's validators call it, and what ours do.
var damages = []struct {
	name    string
	do      func(told []histories.Change) []histories.Change
	theirs  string
	finding histories.Property
}{
	{"lost", func(c []histories.Change) []histories.Change { return slices.Delete(c, 2, 3) },
		"broke Reliable", histories.Reliable},
	{"first lost", func(c []histories.Change) []histories.Change { return slices.Delete(c, 0, 1) },
		"broke Resumable", histories.Resumable},
	{"twice", func(c []histories.Change) []histories.Change { return slices.Insert(c, 2, c[1]) },
		"broke Unique", histories.Unique},
	{"swapped", func(c []histories.Change) []histories.Change { c[1], c[2] = c[2], c[1]; return c },
		"broke Ordered", histories.Ordered},
	{"early bookmark", func(c []histories.Change) []histories.Change {
		return slices.Insert(c, 1, histories.Change{Type: watch.Bookmark, ResourceVersion: c[2].ResourceVersion})
	}, "broke Bookmarkable", histories.Bookmarkable},
}

// damage breaks one property of each reader's history after the other.
func damage(t *testing.T, run *robustness.Run) {
	t.Helper()
	quiet(t)
	for _, reader := range run.Readers {
		for _, d := range damages {
			broken, at := damaged(reader, d.do)
			if strings.HasPrefix(reader.Reader, "slow") && at < 0 {
				continue // it fell behind all the time
			}
			require.GreaterOrEqual(t, at, 0, "%s: no stream is long enough", reader.Reader)
			require.ErrorContains(t, run.JudgeReader(broken, judging), d.theirs, "%s: %s", reader.Reader, d.name)
			var v *histories.Violation
			require.ErrorAs(t, run.Check(broken), &v, "%s: %s", reader.Reader, d.name)
			require.Equal(t, d.finding, v.Property, "%s: %s: %v", reader.Reader, d.name, v)
			require.Equal(t, at, v.Stream)
		}
		torn, ok := tear(reader)
		if !ok {
			continue // it began with nothing, and never listed again
		}
		require.Error(t, run.JudgeReader(torn, judging), "%s: half a state", reader.Reader)
		var v *histories.Violation
		require.ErrorAs(t, run.Check(torn), &v, "%s: half a state", reader.Reader)
		require.Equal(t, histories.Atomic, v.Property, v)
	}
}

// damaged applies a damage to the first stream that has five events, without its bookmarks.
func damaged(r robustness.Reader, do func([]histories.Change) []histories.Change) (robustness.Reader, int) {
	r.Streams = slices.Clone(r.Streams)
	for i, s := range r.Streams {
		events := slices.DeleteFunc(slices.Clone(s.Told), func(c histories.Change) bool { return c.Type == watch.Bookmark })
		if len(events) >= 5 {
			r.Streams[i].Told = do(events)
			return r, i
		}
	}
	return r, -1
}

// tear takes an object out of the first state that has one and that nothing follows before the next
// event.
func tear(r robustness.Reader) (robustness.Reader, bool) {
	r.Streams = slices.Clone(r.Streams)
	for i, s := range r.Streams {
		if s.Listed == nil || len(s.Listed.Objects) < 2 {
			continue
		}
		state := histories.State{ResourceVersion: s.Listed.ResourceVersion, Objects: map[string]string{}}
		oldest := ""
		for key, version := range s.Listed.Objects {
			if state.Objects[key] = version; oldest == "" || number(version) < number(state.Objects[oldest]) {
				oldest = key
			}
		}
		delete(state.Objects, oldest)
		r.Streams[i].Listed = &state
		return r, true
	}
	return r, false
}

// quiet hides what etcd's validators print of each violation.
func quiet(t *testing.T) {
	t.Helper()
	hole, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	before := os.Stdout
	os.Stdout = hole
	t.Cleanup(func() {
		os.Stdout = before
		_ = hole.Close()
	})
}
