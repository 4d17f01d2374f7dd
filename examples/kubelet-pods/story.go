package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// story is the embedded default: an API server with pods, a folder of manifests and a manifest URL,
// and a play in which all of them change. Nothing of it leaves the machine.
type story struct {
	node   string
	beat   time.Duration // between two steps
	client rest.Interface
	folder string // of manifests
	url    string // of manifests

	pods     *collection.Collection[*corev1.Pod]
	manifest atomic.Pointer[string] // the body of url's answers
	api      *apiserver.Server
	server   *http.Server
	serving  sync.WaitGroup
	teller   teller
	failed   error // the first step that went wrong
}

func startStory(o options, teller teller) (*story, error) {
	s := &story{node: o.node, beat: o.beat, teller: teller}
	var err error
	if s.folder, err = os.MkdirTemp("", "kubelet-pods-"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		s.api, err = apiserver.NewServer()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	address := "http://" + listener.Addr().String()
	s.url = address + "/story/manifests.yaml"
	s.pods = apiserver.Serve(s.api, builtin.Pods())
	mux := http.NewServeMux()
	mux.Handle("/", s.api)
	mux.HandleFunc("/story/manifests.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, *s.manifest.Load())
	})
	s.server = &http.Server{Handler: mux}
	s.serving.Go(func() { _ = s.server.Serve(listener) })
	if s.client, err = listwatch.NewRESTClient(&rest.Config{Host: address, UserAgent: "kubelet-pods"}, corev1.SchemeGroupVersion); err != nil {
		s.stop()
		return nil, err
	}
	s.prologue()
	if s.failed != nil {
		s.stop()
		return nil, s.failed
	}
	s.teller.tell("No cluster was named: a story of node %s, with an API server of its own.", s.node)
	s.teller.tell("look:   kubectl -s %s get pods -A -w", address)
	s.teller.tell("change: kubectl -s %s delete pod -n kube-system dns", address)
	s.teller.tell("edit:   %s", s.folder)
	return s, nil
}

// stop ends the server and removes the folder.
func (s *story) stop() {
	s.api.Close()
	_ = s.server.Close()
	s.serving.Wait()
	_ = os.RemoveAll(s.folder)
}

// prologue writes the state that the agent finds.
func (s *story) prologue() {
	s.create("kube-system", "dns", s.node, "registry.k8s.io/coredns/coredns:v1.12.0", corev1.PodRunning)
	s.create("default", "web-0", "another-node", "docker.io/library/nginx:1.27", corev1.PodRunning)
	s.create("default", "job", "", "docker.io/library/busybox:1.36", corev1.PodPending)
	s.write("etcd.yaml", staticPod("etcd", "", "registry.k8s.io/etcd:3.6.8", ""))
	s.write("proxy.yaml", staticPod("proxy", "11111111-file", "docker.io/library/haproxy:3.1", ""))
	s.publish(staticPod("agent", "22222222-http", "docker.io/fluent/fluent-bit:4.0", ""))
}

// play changes things, one by one: every operation of every source. The manifests with a UID of
// their own keep being the same pod when they change; etcd.yaml, without one, is another pod after
// each edit, as it is for the kubelet.
func (s *story) play(ctx context.Context) {
	const proxy, agent = "11111111-file", "22222222-http"
	deleted := "  deletionTimestamp: 2030-01-01T00:00:00Z\n  deletionGracePeriodSeconds: 30\n"
	steps := []struct {
		say string
		do  func()
	}{
		{"The scheduler binds default/job to this node.", func() { s.bind("default", "job") }},
		{"Its container starts.", func() { s.phase("default", "job", corev1.PodRunning) }},
		{"It gets a label.", func() { s.label("default", "job") }},
		{"An editor saves etcd.yaml with a new image ...", func() { s.write("etcd.yaml", staticPod("etcd", "", "registry.k8s.io/etcd:3.6.9", "")) }},
		{"... and proxy.yaml.", func() { s.write("proxy.yaml", staticPod("proxy", proxy, "docker.io/library/haproxy:3.2", "")) }},
		{"The manifest URL has a new image.", func() { s.publish(staticPod("agent", agent, "docker.io/fluent/fluent-bit:4.1", "")) }},
		{"A half-written file: its pod stays, the log says why.", func() { s.write("etcd.yaml", "apiVersion: v1\nkind: Pod\nmeta") }},
		{"The writer is done, and two manifests come with a status message.", func() {
			s.write("etcd.yaml", staticPod("etcd", "", "registry.k8s.io/etcd:3.6.9", ""))
			s.write("proxy.yaml", staticPod("proxy", proxy, "docker.io/library/haproxy:3.2", warming))
			s.publish(staticPod("agent", agent, "docker.io/fluent/fluent-bit:4.1", warming))
		}},
		{"kubectl delete pod job: 30 seconds to stop.", func() { s.end("default", "job") }},
		{"The manifests ask for the same.", func() {
			s.write("proxy.yaml", withMetadata(staticPod("proxy", proxy, "docker.io/library/haproxy:3.2", warming), deleted))
			s.publish(withMetadata(staticPod("agent", agent, "docker.io/fluent/fluent-bit:4.1", warming), deleted))
		}},
		{"job has stopped and is gone.", func() { _, err := s.pods.Remove("default", "job"); s.check(err) }},
		{"proxy.yaml is removed, and the URL answers an empty list.", func() {
			s.check(os.Remove(filepath.Join(s.folder, "proxy.yaml")))
			s.publish(`{"apiVersion": "v1", "kind": "PodList", "items": []}`)
		}},
	}
	for _, step := range steps {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.beat):
		}
		s.teller.tell("%s", step.say)
		if step.do(); s.failed != nil {
			s.teller.tell("The story cannot go on: %v", s.failed)
			return
		}
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(2 * s.beat):
	}
	s.teller.tell("That was each operation of each source: the API server, files and a URL.")
	s.teller.tell("Next: --status localhost:8080 shows the sources on a page, and")
	s.teller.tell("--kubeconfig FILE --node NAME follows a real node. Ctrl-C ends the story.")
	<-ctx.Done()
}

// warming is a status in a manifest: the phase is the node's to say, the rest is kept.
const warming = "status: {message: warming up}\n"

// staticPod is a manifest of one container.
func staticPod(name, uid, image, status string) string {
	metadata := "  name: " + name + "\n  namespace: kube-system\n"
	if uid != "" {
		metadata += "  uid: " + uid + "\n"
	}
	return "apiVersion: v1\nkind: Pod\nmetadata:\n" + metadata +
		"spec:\n  containers:\n  - {name: main, image: " + image + "}\n" + status
}

func withMetadata(manifest, more string) string {
	const at = "metadata:\n"
	head, tail, _ := strings.Cut(manifest, at)
	return head + at + more + tail
}

func (s *story) check(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// write replaces a manifest as careful writers do: by a rename into place.
func (s *story) write(name, manifest string) {
	temporary := filepath.Join(s.folder, "."+name)
	s.check(os.WriteFile(temporary, []byte(manifest), 0o600))
	s.check(os.Rename(temporary, filepath.Join(s.folder, name)))
}

func (s *story) publish(manifest string) { s.manifest.Store(&manifest) }

func (s *story) create(namespace, name, node, image string, phase corev1.PodPhase) {
	_, err := s.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: image}}},
		Status:     statusOf(phase),
	})
	s.check(err)
}

// statusOf is the status of a pod of one container, which is ready as soon as it runs.
func statusOf(phase corev1.PodPhase) corev1.PodStatus {
	running := phase == corev1.PodRunning
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: running}}}
}

// change gives a copy of a pod to edit, and writes it with save.
func (s *story) change(namespace, name string, edit func(*corev1.Pod), save func(*corev1.Pod) (*corev1.Pod, error)) {
	pod, err := s.pods.Get(namespace, name)
	if err != nil {
		s.check(err)
		return
	}
	pod = pod.DeepCopy()
	edit(pod)
	_, err = save(pod)
	s.check(err)
}

func (s *story) bind(namespace, name string) {
	s.change(namespace, name, func(p *corev1.Pod) { p.Spec.NodeName = s.node }, s.pods.Update)
}

func (s *story) phase(namespace, name string, phase corev1.PodPhase) {
	s.change(namespace, name, func(p *corev1.Pod) { p.Status = statusOf(phase) }, s.pods.UpdateStatus)
}

func (s *story) label(namespace, name string) {
	s.change(namespace, name, func(p *corev1.Pod) { p.Labels["tier"] = "batch" }, s.pods.Update)
}

func (s *story) end(namespace, name string) {
	grace := int64(30)
	_, err := s.pods.Delete(namespace, name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	s.check(err)
}
