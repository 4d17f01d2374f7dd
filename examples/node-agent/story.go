package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// story is the embedded default: an API server with a pod of a Deployment, a folder with a static
// pod, and their logs, as a kubelet and a container runtime write them. Nothing leaves the machine.
type story struct {
	folder          string // all files of the story
	logs, manifests string
	web, etcd       string // the folders of two containers' logs
	beat            time.Duration
	address         string
	pods            *collection.Collection[*corev1.Pod]
	configMaps      *collection.Collection[*corev1.ConfigMap]
	secrets         *collection.Collection[*corev1.Secret]
	api             *apiserver.Server
	server          *http.Server // nil while the API server is away
	serving         sync.WaitGroup
	stderr          io.Writer
	failed          error // the first step that went wrong
}

func startStory(o *options, stderr io.Writer) (s *story, err error) {
	s = &story{beat: o.beat, stderr: stderr, address: "127.0.0.1:0"}
	if s.folder, err = os.MkdirTemp("", "node-agent-"); err != nil {
		return nil, err
	}
	s.logs, s.manifests = filepath.Join(s.folder, "pods"), filepath.Join(s.folder, "manifests")
	state := filepath.Join(s.folder, "state")
	for _, folder := range []string{s.logs, s.manifests, state} {
		s.check(os.Mkdir(folder, 0o700))
	}
	if s.api, err = apiserver.NewServer(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	s.pods = apiserver.Serve(s.api, builtin.Pods())
	s.configMaps = apiserver.Serve(s.api, builtin.Of[*corev1.ConfigMap]())
	s.secrets = apiserver.Serve(s.api, builtin.Of[*corev1.Secret]())
	s.prologue(o.node)
	if s.serve(); s.failed != nil {
		s.stop()
		return nil, s.failed
	}
	o.config = &rest.Config{Host: "http://" + s.address}
	o.logs, o.manifests = s.logs, s.manifests
	if o.state == "" {
		o.state = state
	}
	s.narrate("no cluster was named: this is a story on an API server of our own, for node " + o.node)
	s.narrate("write a log yourself: echo hello >>" + filepath.Join(s.web, "0.log"))
	return s, nil
}

// prologue writes the state that the agent finds.
func (s *story) prologue(node string) {
	_, err := apiserver.Serve(s.api, builtin.Of[*corev1.Node]()).Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	s.check(err)
	yes := true
	sets := apiserver.Serve(s.api, builtin.Of[*appsv1.ReplicaSet]())
	set, err := sets.Create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-5d9c7b6f8",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: &yes}},
	}})
	s.check(err)
	if err != nil {
		return
	}
	_, err = s.configMaps.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}})
	s.check(err)
	web, err := s.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-5d9c7b6f8-x2x4k", Labels: map[string]string{"app": "web", "pod-template-hash": "5d9c7b6f8"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "nginx:1.27", EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tls"}}},
			},
		}}},
	})
	s.check(err)
	if err != nil {
		return
	}
	s.manifest(etcdManifest)
	s.web = s.container(fmt.Sprintf("default_%s_%s", web.Name, web.UID))
	// The UID is the kubelet's: no mirror of the pod tells it.
	s.etcd = s.container("kube-system_etcd-" + node + "_5d41402abc4b2a76b9719d911017c592")
	s.write(s.web, "0.log", "started")
	s.write(s.etcd, "0.log", "started")
}

const etcdManifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system, labels: {tier: control-plane}}\n" +
	"spec: {containers: [{name: main, image: etcd}]}\n"

// play tells a story of a node. Each line of a log is to come out once, joined with its pod.
func (s *story) play(ctx context.Context) error {
	for _, step := range []struct {
		say string
		do  func()
	}{
		{"the web server writes", func() { s.write(s.web, "0.log", "GET /") }},
		{"somebody labels its pod", func() { s.label("track", "canary") }},
		{"somebody creates a Secret that it mentions", func() { s.secret("tls", "a") }},
		{"the kubelet rotates its log: renamed, written a last time, made anew", func() {
			s.write(s.web, "0.log", "labelled")
			s.check(os.Rename(filepath.Join(s.web, "0.log"), filepath.Join(s.web, "0.log.20260102-030405")))
			s.write(s.web, "0.log.20260102-030405", "last before the rotation")
			s.write(s.web, "0.log", "first after the rotation")
		}},
		{"an editor writes half of etcd.yaml", func() { s.manifest(etcdManifest[:40]) }},
		{"etcd goes on, and so does its log", func() { s.write(s.etcd, "0.log", "behind half a manifest") }},
		{"the API server is away", func() { s.away() }},
		{"the web server goes on", func() { s.write(s.web, "0.log", "without an API server") }},
		{"its container restarts", func() { s.write(s.web, "1.log", "restarted, and reading its configuration") }},
		{"the API server and the manifest are back", func() { s.serve(); s.manifest(etcdManifest) }},
		{"somebody truncates the log", func() { s.check(os.Truncate(filepath.Join(s.web, "1.log"), 0)) }},
		{"and the web server writes into it", func() { s.write(s.web, "1.log", "cut") }},
		{"the pod is deleted", func() { s.remove() }},
		{"and its last word comes late", func() { s.write(s.web, "1.log", "goodbye") }},
	} {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.beat):
		}
		s.narrate(step.say)
		if step.do(); s.failed != nil {
			return s.failed
		}
	}
	<-ctx.Done()
	return nil
}

// serve answers as the API server, on the same port each time.
func (s *story) serve() {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.check(err)
		return
	}
	s.address = listener.Addr().String()
	server := &http.Server{Handler: s.api}
	s.server = server
	s.serving.Go(func() { _ = server.Serve(listener) })
}

// away cuts all connections to the API server, and refuses others.
func (s *story) away() {
	if s.server != nil {
		_ = s.server.Close()
		s.server = nil
	}
}

// stop ends the server and removes the folder.
func (s *story) stop() {
	s.api.Close()
	s.away()
	s.serving.Wait()
	_ = os.RemoveAll(s.folder)
}

func (s *story) narrate(text string) { fmt.Fprintln(s.stderr, "#", text) }

func (s *story) check(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// container makes the folder of the one container of a pod.
func (s *story) container(pod string) string {
	folder := filepath.Join(s.logs, pod, "main")
	s.check(os.MkdirAll(folder, 0o700))
	return folder
}

// write appends a line to a log, as a container runtime does.
func (s *story) write(folder, name, text string) {
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.check(err)
		return
	}
	_, err = fmt.Fprintf(file, "%s stdout F %s\n", time.Now().Format(time.RFC3339Nano), text)
	s.check(errors.Join(err, file.Close()))
}

func (s *story) manifest(text string) {
	s.check(os.WriteFile(filepath.Join(s.manifests, "etcd.yaml"), []byte(text), 0o600))
}

func (s *story) label(key, value string) {
	s.change(func(pod *corev1.Pod) error {
		pod = pod.DeepCopy()
		pod.Labels[key] = value
		_, err := s.pods.Update(pod)
		return err
	})
}

func (s *story) secret(name, value string) {
	_, err := s.secrets.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"key": value}})
	s.check(err)
}

func (s *story) remove() {
	s.change(func(pod *corev1.Pod) error {
		_, err := s.pods.Remove(pod.Namespace, pod.Name)
		return err
	})
}

// change has do change the one pod.
func (s *story) change(do func(*corev1.Pod) error) {
	for _, pod := range s.pods.Snapshot().All() {
		s.check(do(pod))
	}
}
