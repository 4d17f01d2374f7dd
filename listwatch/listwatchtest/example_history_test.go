package listwatchtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// A test of a handler that must be told everything, over a connection that breaks. At its end the
// history is judged. Then one event is removed from it, to show that CheckHistory names the loss.
func ExampleCheckHistory() {
	test := func(t testing.TB) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		told, recording := listwatchtest.RecordHandler[*corev1.Pod]("my handler")
		inf := informer.New[*corev1.Pod](pods.ListerWatcher())
		last := make(chan struct{})
		handler, err := inf.AddHandler(func(e informer.Event[*corev1.Pod]) {
			told(e.Old, e.New, e.Initial || e.Missed)
			// … the code under test
			if e.Key == "default/web-5" {
				close(last)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = inf.Run(ctx) })
		_ = handler.WaitSynced(ctx)

		for i := range 6 {
			if i == 3 {
				pods.Disconnect()
			}
			pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)}})
		}
		<-last
		cancel()
		running.Wait()

		history := recording.History()
		fmt.Println(listwatchtest.CheckHistory(pods.Changes(), history))

		stream := &history.Streams[len(history.Streams)-1]
		stream.Told = slices.Delete(stream.Told, 2, 3)
		err = listwatchtest.CheckHistory(pods.Changes(), history)
		var violation *listwatchtest.Violation
		fmt.Println(errors.As(err, &violation), violation.Property, violation.Key)
	}
	run(test)
	// Output:
	// <nil>
	// true reliable default/web-2
}
