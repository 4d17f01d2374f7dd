package main

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
)

const (
	storyNode = "node-1"
	// silence is when the story's counter takes a connection for dead. The test's counter has the
	// default of 90 seconds, since they cost no time there.
	silence = 2 * time.Second
	// patience is longer than any fault lasts.
	patience = 15 * time.Second
)

// host stands for the test that a fake belongs to: the story has none.
type host struct {
	testing.TB
	cleanups []func()
	failed   error
}

func (h *host) Helper() {}

func (h *host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

func (h *host) Failed() bool { return h.failed != nil }

func (h *host) Errorf(format string, args ...any) { h.failed = fmt.Errorf(format, args...) }

// Fatalf is for a fake that cannot start, which ends the program.
func (h *host) Fatalf(format string, args ...any) { panic(fmt.Errorf(format, args...)) }

func (h *host) end() {
	for _, f := range h.cleanups {
		defer f()
	}
}

// tell plays the story: a counter on a fake server, which breaks in four ways.
func tell(ctx context.Context, out io.Writer) error {
	h := new(host)
	defer h.end()
	pods := listwatchtest.New(h, listwatchtest.Pods())
	pods.Create(podOn(storyNode, "web"))
	c := newCounter(pods.ListerWatcher(), reflector.WithLiveness(silence))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	defer func() { cancel(); <-ended }()

	fmt.Fprintln(out, "# No cluster was named: a story on a fake server in this process.")
	fmt.Fprintln(out, "# The server is slow to answer: a number that is not known is not made up.")
	pods.Delay(time.Second)
	go func() { ended <- c.run(ctx) }()
	pods.Server().AwaitRequests(1)
	_, err := c.count(storyNode)
	fmt.Fprintf(out, "%s: unknown: %v\n", storyNode, err)
	want := 1
	if err := c.await(ctx, out, want); err != nil {
		return err
	}
	for _, step := range []struct {
		say   string
		fault func()
	}{
		{"The connection is cut, and a pod is created meanwhile.", func() { pods.Disconnect() }},
		{"The server forgets its history (410 Gone), and a pod is created.", func() { pods.Expire() }},
		{"The connection is half open: nothing comes, nothing fails. A pod is created.", func() { pods.Mute() }},
	} {
		fmt.Fprintln(out, "#", step.say)
		step.fault()
		want++
		pods.Create(podOn(storyNode, fmt.Sprint("web-", want)))
		if err := c.await(ctx, out, want); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "# That was a slow server and three faults: the number was right after each.")
	fmt.Fprintln(out, "# Next: go test -v ./examples/fake-listwatch does the same in no time, and")
	fmt.Fprintln(out, "# --kubeconfig FILE --node NAME counts the pods of a real node.")
	return h.failed
}

// await prints the number once it is as wanted.
func (c *counter) await(ctx context.Context, out io.Writer, want int) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for {
		if n, err := c.count(storyNode); err == nil && n == want {
			_, err := fmt.Fprintf(out, "%s: %d pod%s, after %.1f s\n", storyNode, n, map[bool]string{true: "s"}[n != 1], time.Since(began).Seconds())
			return err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return fmt.Errorf("the story ends before %s has %d pods: %w", storyNode, want, ctx.Err())
		}
	}
}

func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}
