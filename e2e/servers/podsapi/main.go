// Command podsapi serves the kubelet's own PodsAPI on the socket that is its argument, with the
// kubelet's pod manager and status manager behind it. Each line of its input is a [command]; it is
// answered by an [answer] once it has been done.
//
// It is built for two releases: with go.mod for 1.36, with -modfile=kube137.mod -tags=kube137 for
// 1.37.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
	apisgrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/pods"
	"k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/tributary-go/tributary/e2e/servers/internal/lines"
)

// command changes the pods of the kubelet in one way.
type command struct {
	// Pod is what a source of the kubelet tells of a pod.
	Pod *corev1.Pod `json:"pod"`
	// Status of the pod UID: its container started at this second since 1970.
	Status *int64    `json:"status"`
	UID    types.UID `json:"uid"`
	// Terminated: the containers of the pod UID have ended.
	Terminated bool `json:"terminated"`
	// Removed: the sources have dropped the pod UID.
	Removed bool `json:"removed"`
	// Burst is the number of further statuses of the pod UID, each a second later, as fast as the
	// kubelet can tell them.
	Burst int64 `json:"burst"`
	// Ready: all sources of the kubelet have told their pods. So it begins.
	Ready *bool `json:"ready"`
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "podsapi:", err)
		os.Exit(1)
	}
}

// kubelet is the parts of a kubelet that the PodsAPI needs.
type kubelet struct {
	pods     pod.Manager
	statuses status.Manager
	api      *pods.PodsServer
	ready    atomic.Bool
	// register has the kubelet tell a client of its own all events.
	register func(chan pods.PodWatchEvent)
}

// answer is what became of a command.
type answer struct {
	Refused string `json:"refused,omitempty"` // why it could not be done
	Lost    int64  `json:"lost,omitempty"`    // events of a burst that the kubelet told nobody
}

func run(socket string, in io.Reader, out io.Writer) error {
	manager := pod.NewBasicPodManager()
	k := &kubelet{pods: manager, statuses: status.NewManager(nil, manager, ended{}, ended{})}
	k.ready.Store(true)
	k.begin()
	k.statuses.AddPodUpdateNotifier(k.api)
	server := grpc.NewServer(apisgrpc.WithRateLimiter(context.Background(), "pods", pods.DefaultQPS, pods.DefaultBurstTokens))
	api.RegisterPodsServer(server, k.api)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	return lines.Answer(in, out, func(c command) (answer, error) { return k.do(c), nil })
}

func (k *kubelet) do(c command) (a answer) {
	switch {
	case c.Pod != nil:
		k.pods.UpdatePod(c.Pod)
		return a
	case c.Ready != nil:
		k.ready.Store(*c.Ready)
		return a
	}
	of, ok := k.pods.GetPodByUID(c.UID)
	switch {
	case !ok:
		a.Refused = "there is no pod " + string(c.UID)
	case c.Terminated:
		k.statuses.TerminatePod(klog.Background(), of)
	case c.Removed:
		k.pods.RemovePod(of)
	case c.Burst > 0:
		a.Lost = k.burst(of, *c.Status, c.Burst)
	case c.Status != nil:
		k.statuses.SetPodStatus(klog.Background(), of, startedAt(*c.Status))
	default:
		a.Refused = "the command has nothing to do"
	}
	return a
}

// burst tells statuses on one processor, so that nothing is sent while it tells. The status manager
// has the last of them. lost is the number of events that did not come to a client with room for
// all.
func (k *kubelet) burst(of *corev1.Pod, from, n int64) (lost int64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	last := from + n
	roomy := make(chan pods.PodWatchEvent, 2*n)
	k.register(roomy)
	for second := from; second < last; second++ {
		k.updated(of, startedAt(second))
	}
	k.statuses.SetPodStatus(klog.Background(), of, startedAt(last))
	for lost = n; ; runtime.Gosched() {
		select {
		case event := <-roomy:
			if event.Type == watch.Deleted {
				return lost
			}
			if event.Pod.Status.ContainerStatuses[0].State.Running.StartedAt.Unix() < last {
				lost--
			}
		default: // a deletion of no pod that anybody knows marks the end, once there is room for it
			k.removed(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mark", UID: "mark"}})
		}
	}
}

// startedAt is the status of a pod with one container. The status manager never changes the start
// of the pod itself.
func startedAt(second int64) corev1.PodStatus {
	running := &corev1.ContainerStateRunning{StartedAt: metav1.Unix(second, 0)}
	return corev1.PodStatus{
		Phase:             corev1.PodRunning,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: running}}},
	}
}

// ended is what the status manager asks about containers, of which there are none.
type ended struct{}

func (ended) PodCouldHaveRunningContainers(*corev1.Pod) bool { return false }
func (ended) DeletePodStartupState(types.UID)                {}
