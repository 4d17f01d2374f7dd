package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// A copy with an index, as in the second step of docs/tutorial.md. A program has
// listwatch.FromClient[corev1.Pod](client, "pods") in place of the fake.
func Example() {
	var t stand
	defer t.end()
	server := listwatchtest.New(&t, listwatchtest.Pods())
	create := func(name, app string) {
		server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}}})
	}
	create("web-0", "web")
	create("db-0", "db")

	byApp := store.NewIndex("app", func(p *corev1.Pod) []string { return []string{p.Labels["app"]} })
	pods := store.NewIndexer(byApp)
	r := reflector.New(server.ListerWatcher(), pods)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	if err := r.WaitSynced(ctx); err != nil {
		fmt.Println(err) // names the cause, such as a 403
	}
	fmt.Println("web has", byApp.Len(pods.Snapshot(), "web"))

	fmt.Println(r.Ready(3 * time.Minute))

	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// web has 1
	// <nil>
	// ended: <nil>
}

// stand takes the place of the t of a test.
type stand struct {
	testing.TB
	cleanups []func()
}

func (*stand) Helper()             {}
func (*stand) Failed() bool        { return false }
func (s *stand) Cleanup(do func()) { s.cleanups = append(s.cleanups, do) }
func (s *stand) end() {
	for _, do := range s.cleanups {
		defer do()
	}
}
