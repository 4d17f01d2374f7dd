package status_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/status"
)

// TestAControllerOnThePage: its row is that of its loop, with the key that keeps it back.
func TestAControllerOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New(t, listwatchtest.Pods())
		server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		pods := informer.New(server.ListerWatcher())
		hang := make(chan struct{})
		var good atomic.Bool
		c := &controller.Controller[string]{
			Feeds: []controller.Feed[string]{controller.For(pods)}, Copies: []controller.Runner{pods},
			Reconcile: func(_ context.Context, key string) error {
				switch {
				case key == "hangs":
					<-hang
				case !good.Load():
					return errors.New("no quota")
				}
				return nil
			},
		}
		page := new(status.Handler)
		defer page.Track("web", c)()
		row := func() status.Copy {
			time.Sleep(2 * time.Second) // a look is shared for a second
			all := page.Document().Copies
			require.Len(t, all, 1)
			require.Equal(t, "controller", all[0].Kind)
			return all[0]
		}
		require.Equal(t, []any{status.Stopped, "not_run"}, []any{row().State, row().NotRight})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		shown := row()
		require.Equal(t, status.Failing, shown.State)
		require.Equal(t, []string{"key_failing"}, shown.Classes)
		require.Equal(t, []string{"ns/a: no quota"}, shown.Causes)
		require.NotEmpty(t, shown.Advice)
		good.Store(true)
		time.Sleep(time.Minute)
		shown = row()
		require.Equal(t, status.Synced, shown.State, "%v", shown)
		require.Positive(t, shown.Events)

		c.Add("hangs")
		time.Sleep(5 * time.Minute)
		c.Add("waits")
		time.Sleep(time.Minute)
		shown = row()
		require.Equal(t, status.Late, shown.State)
		require.Equal(t, status.Reader{Name: "keys with a change", Behind: 1, LagSeconds: 62}, shown.Readers[0])
		time.Sleep(5 * time.Minute)
		shown = row()
		require.Equal(t, []any{status.Failing, "stuck"}, []any{shown.State, shown.NotRight})
		require.Contains(t, shown.Causes[0], "the call for hangs has not returned for 11m")
		close(hang)
		require.Equal(t, status.Synced, row().State)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, []any{status.Stopped, "ended"}, []any{row().State, row().NotRight})
	})
}

// stranger is a reporter of another library.
type stranger struct{}

func (stranger) Samples(string) iter.Seq[metrics.Sample] {
	return func(yield func(metrics.Sample) bool) {
		yield(metrics.Sample{Metric: &metrics.Metric{Name: "queue_length"}, Value: 3})
	}
}

// TestAReporterThatThePageDoesNotKnow is a row that says so.
func TestAReporterThatThePageDoesNotKnow(t *testing.T) {
	page := new(status.Handler)
	defer page.Track("queue", stranger{})()
	all := page.Document().Copies
	require.Len(t, all, 1)
	require.Equal(t, []any{"queue", "unknown", status.Failing}, []any{all[0].Name, all[0].Kind, all[0].State})
	require.Equal(t, []string{"the page does not know the metrics of a status_test.stranger: track parts of this library"}, all[0].Causes)
}
