package lookup_test

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/store"
)

// fixed is a source whose pods never change.
type fixed []*corev1.Pod

func (fixed) Name() string           { return "fixed" }
func (fixed) Report() sources.Report { return sources.Report{} }

func (f fixed) Run(ctx context.Context, sink *sources.Sink) error {
	var pods store.Indexer[*corev1.Pod]
	if err := pods.Replace(store.Items(f...), store.At("")); err != nil {
		return err
	}
	sink.Set(pods.Snapshot())
	<-ctx.Done()
	return nil
}

func Example() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent-x2x4k", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "agent"}, metav1.SchemeGroupVersion.WithKind("DaemonSet")),
		}},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}},
	}
	pods := sources.New("node-1", sources.Custom(fixed{pod})) // or sources.APIServer(client)
	find := lookup.New(pods)                                  // Owners finds Deployments, too
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	<-pods.Updates()
	if found := find.ByIP(netip.MustParseAddr("10.0.0.7")); found != nil {
		owner, _ := find.Owner(found.Pod)
		fmt.Println(found.Pod.Name, "of", owner.Kind, owner.Name)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// agent-x2x4k of DaemonSet agent
	// <nil>
}
