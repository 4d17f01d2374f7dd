package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// kubeletPath is where the server answers as a kubelet does, with the pods of the first node.
const kubeletPath = "/kubelet/pods"

// figures are the server's counts since its start.
type figures struct {
	Requests, Kubelet int64 // to the API server, and to the kubelet
	Bytes             int64
	Watches           int64   // open now
	CPU               float64 // seconds, user and system
}

func (f figures) since(before figures) figures {
	return figures{f.Requests - before.Requests, f.Kubelet - before.Kubelet, f.Bytes - before.Bytes, f.Watches, f.CPU - before.CPU}
}

// server is an API server with the pods of all nodes.
type server struct {
	settings
	pods     *collection.Collection[*corev1.Pod]
	names    []string // of the pods
	made     int
	requests atomic.Int64
	watches  atomic.Int64
	kubelet  atomic.Int64
	bytes    atomic.Int64
}

// serve prints its address and serves until its input ends.
func serve(ctx context.Context, s settings) error {
	api, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	srv := &server{settings: s, pods: apiserver.Serve(api, builtin.Pods())}
	for i := range s.Agents * s.PerNode {
		name, err := srv.create(i)
		if err != nil {
			return err
		}
		srv.names = append(srv.names, name)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		srv.requests.Add(1)
		if r.URL.Query().Get("watch") != "" {
			srv.watches.Add(1)
			defer srv.watches.Add(-1)
		}
		api.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET "+kubeletPath, srv.listAsKubelet)
	mux.HandleFunc("POST /churn", func(w http.ResponseWriter, r *http.Request) {
		if err := srv.churn(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(srv.figures())
	})
	mux.HandleFunc("POST /touch", func(w http.ResponseWriter, r *http.Request) {
		if err := srv.touch(r.URL.Query().Get("what"), r.URL.Query().Get("value")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "{}")
	})
	mux.HandleFunc("POST /figures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(srv.figures()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	hs := &http.Server{Handler: mux}
	defer context.AfterFunc(self.UntilInputEnds(ctx), func() { _ = hs.Close() })()
	_ = hs.Serve(counted{listener, &srv.bytes})
	return nil
}

// listAsKubelet answers with the pods of the first node, in JSON.
func (s *server) listAsKubelet(w http.ResponseWriter, _ *http.Request) {
	s.kubelet.Add(1)
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, pod := range s.pods.Snapshot().All() {
		if pod.Spec.NodeName == nodeName(0) {
			list.Items = append(list.Items, *pod)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// create makes a pod on the node of number i, and as its kubelet does, a status for it.
func (s *server) create(i int) (name string, err error) {
	pod := world.Pods{PerSet: 50}.Pod(s.made, 0, 0)
	s.made++
	pod.Namespace, pod.Name, pod.ResourceVersion = "default", fmt.Sprintf("%s-%d", pod.Name, s.made), ""
	pod.Spec.NodeName = nodeName(i % s.Agents)
	status := pod.Status
	created, err := s.pods.Create(pod)
	if err != nil {
		return "", err
	}
	created = created.DeepCopy()
	created.Status = status
	_, err = s.pods.UpdateStatus(created)
	return pod.Name, err
}

// churn replaces 1 % of the pods for each minute of the hour, at the rate.
func (s *server) churn(ctx context.Context) error {
	began := time.Now()
	for n := range len(s.names) / 100 * s.Hour {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return ctx.Err()
		}
		i := n * 7919 % len(s.names)
		if _, err := s.pods.Remove("default", s.names[i]); err != nil {
			return err
		}
		name, err := s.create(i)
		if err != nil {
			return err
		}
		s.names[i] = name
	}
	time.Sleep(2 * time.Second) // the last events are on their way
	return nil
}

// touch changes a label or the status of a pod of the first node.
func (s *server) touch(what, value string) error {
	pod, err := s.pods.Get("default", s.names[0])
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	if what == "label" {
		pod.Labels["v"] = value
		_, err = s.pods.Update(pod)
		return err
	}
	pod.Status.Message = value
	_, err = s.pods.UpdateStatus(pod)
	return err
}

func (s *server) figures() figures {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail for the process itself
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return figures{s.requests.Load(), s.kubelet.Load(), s.bytes.Load(), s.watches.Load(), seconds(usage.Utime) + seconds(usage.Stime)}
}

// counted counts the bytes that are written to its connections.
type counted struct {
	net.Listener
	bytes *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, c.bytes}, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}
