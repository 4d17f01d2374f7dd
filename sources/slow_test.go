package sources

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

// handed is a source whose states a test hands over, without waiting.
type handed struct {
	name string
	sink *Sink
}

func (h *handed) Name() string   { return h.name }
func (h *handed) Report() Report { return Report{} }

func (h *handed) Run(ctx context.Context, sink *Sink) error {
	h.sink = sink
	<-ctx.Done()
	return nil
}

// set makes these "name=image" all pods of the source.
func (h *handed) set(pods ...string) {
	var all store.Indexer[*corev1.Pod]
	for _, text := range pods {
		_ = all.Add(podNamed(text[:1], text[2:]))
	}
	h.sink.Set(all.Snapshot())
	synctest.Wait()
}

func podNamed(name, image string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u"}}
	pod.Spec.NodeName = image
	return pod
}

// inBubble runs sources of the handed ones while test does, in a time of its own.
func inBubble(t *testing.T, test func(*Sources), options ...Option) {
	synctest.Test(t, func(t *testing.T) {
		s := New("node-1", options...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		test(s)
		cancel()
		require.NoError(t, <-done)
	})
}

// unread is all that a reader gets who comes now.
func unread(s *Sources) (lines []string) {
	for {
		synctest.Wait()
		select {
		case u := <-s.Updates():
			line := fmt.Sprint(u.Op)
			for _, pod := range u.Pods {
				line += fmt.Sprintf(" %s=%s", pod.Name, pod.Spec.NodeName)
			}
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func TestWhatIsNotReadIsMerged(t *testing.T) {
	for _, row := range []struct {
		name   string
		told   []string
		unread [][]string
		want   []string
		missed int
	}{
		{"ADD, REMOVE", []string{"k=1"}, [][]string{{"a=1", "k=1"}, {"k=1"}}, nil, 1},
		{"ADD, UPDATE", []string{"k=1"}, [][]string{{"a=1", "k=1"}, {"a=2", "k=1"}}, []string{"ADD a=2"}, 0},
		{"ADD, UPDATE, REMOVE, ADD", []string{}, [][]string{{"a=1"}, {"a=2"}, {}, {"a=3"}}, []string{"ADD a=3"}, 1},
		{"UPDATE, and back", []string{"a=1"}, [][]string{{"a=2"}, {"a=1"}}, nil, 0},
		{"UPDATE, REMOVE", []string{"a=1"}, [][]string{{"a=2"}, {}}, []string{"REMOVE a=1"}, 0},
		{"REMOVE, ADD of another", []string{"a=1"}, [][]string{{}, {"b=1"}}, []string{"REMOVE a=1", "ADD b=1"}, 0},
		{"one after the other", []string{"k=1"}, [][]string{{"a=1"}, {"b=1"}, {"c=1"}, {"k=1"}}, nil, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &handed{name: "s"}
			inBubble(t, func(s *Sources) {
				h.set(row.told...)
				require.Len(t, unread(s), 1)
				for _, pods := range row.unread {
					h.set(pods...)
				}
				time.Sleep(keepsUp) // nobody reads
				require.Equal(t, row.want, unread(s))
				require.Equal(t, row.missed, s.Status()[0].Missed)
			}, Custom(h))
		})
	}
}

func TestAFirstStateThatIsGoneBeforeItIsReadIsEmpty(t *testing.T) {
	h := &handed{name: "s"}
	inBubble(t, func(s *Sources) {
		h.set("a=1")
		time.Sleep(keepsUp)
		h.set()
		require.Equal(t, []string{"ADD"}, unread(s))
	}, Custom(h))
}

// Once the reader is late, what comes is merged with what it has not read at once, and goes on
// being so until it has read everything; then each step counts again.
func TestAReaderWhoComesBack(t *testing.T) {
	h := &handed{name: "s"}
	inBubble(t, func(s *Sources) {
		h.set("a=1")
		require.Equal(t, "ADD", string((<-s.Updates()).Op))
		h.set("b=1") // REMOVE a, ADD b
		require.Equal(t, "REMOVE", string((<-s.Updates()).Op))
		time.Sleep(keepsUp)
		h.set("c=1")
		h.set("b=2", "c=2")
		require.Equal(t, []string{"ADD b=2 c=2"}, unread(s))
		h.set("b=3")
		h.set("b=4")
		require.Equal(t, []string{"REMOVE c=2", "UPDATE b=3", "UPDATE b=4"}, unread(s))
	}, Custom(h))
}

func TestLikeTheKubeletAnUnreadStepStaysAStep(t *testing.T) {
	h := &handed{name: "s"}
	inBubble(t, func(s *Sources) {
		h.set("a=1")
		time.Sleep(time.Hour)
		h.set()
		require.Equal(t, []string{"ADD a=1", "REMOVE a=1"}, unread(s))
	}, Custom(h), LikeKubelet())
}

// TestReadersAgainstAModel has random writers and a reader who pauses at random. One who always
// comes back in time reads what a merge says that is given each state; for any other, a source
// never has more waiting than keepsUp allows, and what is read in the end is the last state.
func TestReadersAgainstAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(60) {
		keeping := run%2 == 0
		synctest.Test(t, func(t *testing.T) {
			model, script := newModelPods(), rand.New(rand.NewPCG(seed, run))
			writers := []*steadySource{{name: "a"}, {name: "b"}}
			for i, w := range writers {
				w.model, w.random, w.states = model, rand.New(rand.NewPCG(seed, run*10+uint64(i)+1)), 300
			}
			s := New("node-1", Custom(writers[0]), Custom(writers[1]))
			done := make(chan error, 1)
			go func() { done <- s.Run(t.Context()) }()
			readers := map[string]*reader{"a": {model: model, held: map[int]variant{}}, "b": {model: model, held: map[int]variant{}}}
			told := map[string][]string{}
			for u := range s.Updates() {
				require.NoError(t, readers[u.Source].take(u))
				told[u.Source] = append(told[u.Source], line(model, u))
				if !keeping {
					checkWaiting(t, s)
					time.Sleep(time.Duration(script.IntN(4)*script.IntN(100)) * time.Millisecond)
				} else if script.IntN(10) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			require.ErrorIs(t, <-done, errScriptEnds)
			for _, w := range writers {
				require.NoError(t, readers[w.name].agrees(w.now))
				if keeping {
					require.Equal(t, w.every(), told[w.name])
				} else {
					require.Less(t, len(told[w.name]), len(w.every()))
				}
			}
		})
	}
}

// checkWaiting wants no more states to wait than came within the time that a reader has.
func checkWaiting(t *testing.T, s *Sources) {
	for _, f := range s.list() {
		f.mu.Lock()
		waiting := slices.Clone(f.pending)
		f.mu.Unlock()
		if n := len(waiting); n > 1 {
			require.Less(t, waiting[n-1].at.Sub(waiting[0].at), keepsUp)
		}
	}
}

// line is an update as the model sees it.
func line(model *modelPods, u PodUpdate) string {
	text := string(u.Op)
	for _, pod := range u.Pods {
		text += fmt.Sprintf(" %+v", model.of(pod))
	}
	return text
}

// steadySource sets a random state every few milliseconds, remembers them all, and ends.
type steadySource struct {
	randomSource
	name string
	all  []Pods
}

func (s *steadySource) Name() string { return s.name }

func (s *steadySource) Run(_ context.Context, sink *Sink) error {
	var pods store.Indexer[*corev1.Pod]
	for range s.states {
		s.now = s.model.next(s.random, &pods)
		s.all = append(s.all, pods.Snapshot())
		sink.Set(pods.Snapshot())
		time.Sleep(time.Duration(1+s.random.IntN(20)) * time.Millisecond)
	}
	return errScriptEnds
}

// every is what is told of all the states, one after the other.
func (s *steadySource) every() (lines []string) {
	m := newMerge(s.name, time.Now)
	for _, pods := range s.all {
		for _, u := range m.plan(state{pods: pods}) {
			lines = append(lines, line(s.model, u))
			m.sent(u)
		}
	}
	return lines
}
