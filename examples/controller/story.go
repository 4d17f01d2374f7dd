package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// story is the embedded default: an API server with nodes, pods and leases, and a play in which
// pods come and go. Nothing of it leaves the machine.
type story struct {
	beat    time.Duration // between two steps
	config  *rest.Config
	pods    *collection.Collection[*corev1.Pod]
	nodes   *collection.Collection[*corev1.Node]
	api     *apiserver.Server
	server  *http.Server
	serving sync.WaitGroup
	stderr  io.Writer
}

func startStory(beat time.Duration, stderr io.Writer) (*story, error) {
	s := &story{beat: beat, stderr: stderr}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if s.api, err = apiserver.NewServer(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.pods = apiserver.Serve(s.api, builtin.Pods())
	s.nodes = apiserver.Serve(s.api, builtin.Of[*corev1.Node]())
	apiserver.Serve(s.api, builtin.Of[*coordinationv1.Lease]())
	s.config = &rest.Config{Host: "http://" + listener.Addr().String(), QPS: -1}
	s.server = &http.Server{Handler: s.api, ReadHeaderTimeout: 10 * time.Second}
	s.serving.Go(func() { _ = s.server.Serve(listener) })
	s.narrate("no cluster was named: this is a story on an API server of our own")
	s.narrate("look at it:  kubectl -s %s get nodes -L %s -w", s.config.Host, label)
	s.narrate("change it:   kubectl -s %s delete pod -n default web-0 --force", s.config.Host)
	return s, nil
}

func (s *story) stop() {
	s.api.Close()
	_ = s.server.Close()
	s.serving.Wait()
}

// play tells the story, once, and then waits for ctx: the reader may go on with kubectl.
func (s *story) play(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"two nodes join", func() error { return errors.Join(s.join("node-1"), s.join("node-2")) }},
		{"three pods are bound", func() error {
			return errors.Join(s.bind("web-0", "node-1"), s.bind("web-1", "node-1"), s.bind("db-0", "node-2"))
		}},
		{"one pod ends", func() error { return s.phase("db-0", corev1.PodSucceeded) }},
		{"one is deleted", func() error { _, err := s.pods.Remove("default", "web-1"); return err }},
		{"and comes again, elsewhere", func() error { return s.bind("web-1", "node-2") }},
		{"somebody writes another number", func() error { return s.overwrite("node-1", "99") }},
		{"a node leaves, with its pods", func() error {
			_, podErr := s.pods.Remove("default", "web-1")
			_, err := s.nodes.Remove("", "node-2")
			return errors.Join(podErr, err)
		}},
	} {
		s.narrate("%s", step.what)
		if err := step.do(); err != nil {
			return err
		}
		select {
		case <-time.After(s.beat):
		case <-ctx.Done():
			return nil
		}
	}
	s.narrate("the story is over; Ctrl-C ends it")
	<-ctx.Done()
	return nil
}

func (s *story) narrate(format string, args ...any) { fmt.Fprintf(s.stderr, "# "+format+"\n", args...) }

func (s *story) join(name string) error {
	_, err := s.nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return err
}

func (s *story) bind(name, node string) error {
	_, err := s.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	return err
}

func (s *story) phase(name string, phase corev1.PodPhase) error {
	pod, err := s.pods.Get("default", name)
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	_, err = s.pods.UpdateStatus(pod)
	return err
}

func (s *story) overwrite(name, text string) error {
	node, err := s.nodes.Get("", name)
	if err != nil {
		return err
	}
	node = node.DeepCopy()
	node.ResourceVersion = "" // whatever has changed meanwhile
	metav1.SetMetaDataLabel(&node.ObjectMeta, label, text)
	_, err = s.nodes.Update(node)
	return err
}
