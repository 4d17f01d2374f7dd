package kubelet_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// fake is a kubelet's PodsAPI on a socket. Its pods and its events are what the test makes them.
type fake struct {
	api.UnimplementedPodsServer
	t      *testing.T
	socket string
	server *grpc.Server
	starts int

	mu       sync.Mutex // guards what follows
	pods     map[types.UID]*corev1.Pod
	watchers map[chan *api.WatchPodsEvent]bool
	refusal  codes.Code
	lists    int
}

// serve starts a kubelet that is ended with the test.
func serve(t *testing.T) *fake {
	f := &fake{
		t: t, socket: filepath.Join(t.TempDir(), "s"),
		pods: map[types.UID]*corev1.Pod{}, watchers: map[chan *api.WatchPodsEvent]bool{},
	}
	f.start()
	t.Cleanup(func() { f.server.Stop() })
	return f
}

func (f *fake) start() {
	listener, err := net.Listen("unix", f.socket)
	require.NoError(f.t, err)
	f.server = grpc.NewServer()
	api.RegisterPodsServer(f.server, f)
	f.starts++
	go func() { _ = f.server.Serve(listener) }()
}

// put holds pods, and tells nothing.
func (f *fake) put(pods ...*corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pod := range pods {
		f.pods[pod.UID] = pod
	}
}

// forget drops pods, and tells nothing.
func (f *fake) forget(uids ...types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, uid := range uids {
		delete(f.pods, uid)
	}
}

// tell sends an event to all watchers.
func (f *fake) tell(kind api.EventType, pod *corev1.Pod) {
	data, err := pod.Marshal()
	require.NoError(f.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	for watcher := range f.watchers {
		watcher <- &api.WatchPodsEvent{Type: kind, Pod: data}
	}
}

// refuse answers all requests with code, and cuts the watches; OK ends that.
func (f *fake) refuse(code codes.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal = code; code != codes.OK {
		f.cutLocked()
	}
}

// cut ends all watches as a kubelet does with a slow client.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutLocked()
}

func (f *fake) cutLocked() {
	for watcher := range f.watchers {
		close(watcher)
	}
	clear(f.watchers)
}

func (f *fake) listed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists
}

func (f *fake) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watchers) > 0
}

func (f *fake) allLocked() (all [][]byte, err error) {
	if f.refusal != codes.OK {
		return nil, status.Error(f.refusal, "hunter2")
	}
	for _, pod := range f.pods {
		pod = pod.DeepCopy()
		pod.Annotations["kubernetes.io/config.seen"] = fmt.Sprint("start ", f.starts)
		data, err := pod.Marshal()
		require.NoError(f.t, err)
		all = append(all, data)
	}
	return all, nil
}

func (f *fake) ListPods(context.Context, *api.ListPodsRequest) (*api.ListPodsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	all, err := f.allLocked()
	return &api.ListPodsResponse{Pods: all}, err
}

func (f *fake) WatchPods(_ *api.WatchPodsRequest, stream api.Pods_WatchPodsServer) error {
	events := make(chan *api.WatchPodsEvent, 1000)
	f.mu.Lock()
	all, err := f.allLocked()
	if err == nil {
		f.watchers[events] = true
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, events)
	}()
	for _, data := range all {
		if err := stream.Send(&api.WatchPodsEvent{Type: api.EventType_ADDED, Pod: data}); err != nil {
			return err
		}
	}
	if err := stream.Send(&api.WatchPodsEvent{Type: api.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "watch client channel closed")
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// podOf is a pod "default/name", and what the edits make of it.
func podOf(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7",
			Annotations: map[string]string{"kubernetes.io/config.source": "api"},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func uid(uid types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = uid } }

func label(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"label": value} }
}

func static(p *corev1.Pod) { p.Annotations["kubernetes.io/config.source"] = "file" }

// since makes a status of a second.
func since(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = new(metav1.Unix(second, 0)) }
}

const patience = time.Minute
