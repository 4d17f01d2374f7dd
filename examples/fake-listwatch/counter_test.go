package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

type fakePods = listwatchtest.Collection[*corev1.Pod]

func onNode(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

// inBubble runs a test with a counter of a fake's pods, two of which are there.
func inBubble(t *testing.T, test func(t *testing.T, pods *fakePods, c *counter)) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(onNode("a", "node-1"))
		pods.Create(onNode("b", "node-2"))
		c := newCounter(pods.ListerWatcher())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.run(ctx) }()
		defer func() { cancel(); require.NoError(t, <-ended) }()
		synctest.Wait()
		test(t, pods, c)
	})
}

func requireCount(t *testing.T, c *counter, want int) {
	t.Helper()
	synctest.Wait() // until nothing is left to do
	n, err := c.count("node-1")
	require.NoError(t, err)
	require.Equal(t, want, n)
}

func TestCountSurvives(t *testing.T) {
	for name, fault := range map[string]func(*fakePods){
		"a disconnect":           func(pods *fakePods) { pods.Disconnect() },
		"an expired version":     func(pods *fakePods) { pods.Expire() },
		"a half-open connection": func(pods *fakePods) { pods.Mute() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, pods *fakePods, c *counter) {
				requireCount(t, c, 1)
				fault(pods)
				pods.Create(onNode("c", "node-1"))
				pods.Create(onNode("d", "node-1"))
				pods.Remove(onNode("a", "node-1"))
				pods.Server().AwaitWatches(1) // it is back
				requireCount(t, c, 2)
			})
		})
	}
}

func TestCountIsNotMadeUp(t *testing.T) {
	inBubble(t, func(t *testing.T, pods *fakePods, c *counter) {
		mute := pods.Mute(listwatchtest.UntilLifted())
		time.Sleep(maxStaleness + time.Minute) // of the bubble's clock
		_, err := c.count("node-1")
		require.ErrorContains(t, err, "proven for 00:00:00, which is 4m0s ago; allowed are 3m0s")
		mute.Lift()
		pods.Create(onNode("c", "node-1"))
		pods.Server().AwaitWatches(1)
		requireCount(t, c, 2)
	})
}

// TestTheStory: it shows that no number is made up, and the right one after each fault. Its end
// says what is next.
func TestTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, tell(t.Context(), &out))
		require.Regexp(t, "node-1: unknown: .*\n"+
			`node-1: 1 pod, after 1\.0 s`+"\n#.*\n"+
			`node-1: 2 pods, after 0\.. s`+"\n#.*\n"+
			`node-1: 3 pods, after 0\.. s`+"\n#.*\n"+
			`node-1: 4 pods, after 4\.0 s`+"\n# That was .*\n# Next: ", out.String())
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len(line), 81, line)
		}
	})
}

// TestAStoryThatIsInterruptedEnds: at once, with an error that says so.
func TestAStoryThatIsInterruptedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		began := time.Now()
		require.ErrorContains(t, tell(ctx, io.Discard), "the story ends before node-1 has 1 pod")
		require.Less(t, time.Since(began), time.Second)
	})
}

// TestFlagsThatSayTooLittle: one line says what is missing.
func TestFlagsThatSayTooLittle(t *testing.T) {
	require.EqualError(t, run(t.Context(), []string{"--kubeconfig", "x"}), "give --node, the name of the node whose pods are counted")
	require.ErrorContains(t, run(t.Context(), []string{"--kubeconfig", "/does/not/exist", "--node", "a"}), "name a file with --kubeconfig")
}
