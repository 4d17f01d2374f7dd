// Command podsurl serves the /pods of the kubelet's own HTTP server on the address that is its
// argument, with the kubelet's pod manager behind it and its own requests for rights before it.
// Each line of its input is a [command]; it is answered by a line once it has been done.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/server"

	"github.com/tributary-go/tributary/e2e/servers/internal/lines"
)

// command changes the kubelet in one way.
type command struct {
	// Pod is what a source of the kubelet tells of a pod.
	Pod *corev1.Pod `json:"pod"`
	// Removed: the sources have dropped the pod UID.
	Removed types.UID `json:"removed"`
	// Right is the resource that users may get from now on.
	Right *string `json:"right"`
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "podsurl:", err)
		os.Exit(1)
	}
}

// kubelet is the parts of a kubelet that /pods needs.
type kubelet struct {
	server.HostInterface
	pods  pod.Manager
	right atomic.Pointer[string]
}

// GetPods is what the kubelet lists.
func (k *kubelet) GetPods() []*corev1.Pod { return k.pods.GetPods() }

// access lets every user get what a command has permitted.
type access struct {
	server.NodeRequestAttributesGetter
	dynamiccertificates.CAContentProvider
	*kubelet
}

// AuthenticateRequest knows everybody.
func (access) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "agent"}}, true, nil
}

// Authorize compares what the kubelet asks for with what a command has permitted.
func (a access) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if asked.GetVerb()+" "+asked.GetResource()+"/"+asked.GetSubresource() == "get "+*a.right.Load() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func run(address string, in io.Reader, out io.Writer) error {
	k := &kubelet{pods: pod.NewBasicPodManager()}
	k.right.Store(new(string))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	rights := access{NodeRequestAttributesGetter: server.NewNodeAuthorizerAttributesGetter("node-1"), kubelet: k}
	handler := server.NewServer(klog.NewContext(context.Background(), klog.Background()), k, nil, nil, nil, rights, &config.KubeletConfiguration{})
	go func() { _ = http.Serve(listener, &handler) }()
	return lines.Answer(in, out, func(c command) (struct{}, error) {
		k.do(c)
		return struct{}{}, nil
	})
}

func (k *kubelet) do(c command) {
	switch {
	case c.Pod != nil:
		k.pods.UpdatePod(c.Pod)
	case c.Right != nil:
		k.right.Store(c.Right)
	default:
		if one, ok := k.pods.GetPodByUID(c.Removed); ok {
			k.pods.RemovePod(one)
		}
	}
}
