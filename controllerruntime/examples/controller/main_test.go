package main

import (
	"bufio"
	"context"
	"io"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

func onNode(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// TestStory: the program follows the story of examples/controller, line by line.
func TestStory(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	nodes := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*corev1.Node]())
	out, stdout := io.Pipe()
	lines := bufio.NewScanner(out)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, pods.Server().Listen(), stdout)
		_ = stdout.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	// says waits for a line. Labels on the way to it may be written too.
	says := func(line string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == line {
				return
			}
		}
		t.Fatalf("the program ended without %q: %v", line, <-ended)
	}
	first := nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	says("node-1 pods=0")
	nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}})
	says("node-2 pods=0")
	pods.Create(onNode("web-0", "node-1"))
	web1 := pods.Create(onNode("web-1", "node-1"))
	says("node-1 pods=2")
	db := pods.Create(onNode("db-0", "node-2"))
	says("node-2 pods=1")
	db = db.DeepCopy()
	db.Status.Phase = corev1.PodSucceeded
	pods.UpdateStatus(db)
	says("node-2 pods=0")
	pods.Remove(web1)
	says("node-1 pods=1")
	pods.Create(onNode("web-1", "node-2"))
	says("node-2 pods=1")
	held, err := nodes.Origin().Get("", first.Name)
	require.NoError(t, err)
	overwritten := held.DeepCopy()
	overwritten.Labels[label] = "99"
	nodes.Update(overwritten)
	says("node-1 pods=1")
	cancel()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	require.NoError(t, <-ended)
}
