package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
)

// TestRelayBeforeAStaleServer: the relay's API server is cut off from etcd, or does not answer,
// while another one acknowledges writes. A list or get without a version has them, or is an error.
// A list of whatever version is answered, with a Warning once its age is known.
func TestRelayBeforeAStaleServer(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	w.fill(100)
	link := netfault.Listen(t, strings.TrimPrefix(c.Etcd.URL(), "http://"))
	behind := c.AddServer("http://" + link.Address())
	faults := []struct {
		name         string
		begin, cease func()
	}{
		{"cut off from etcd", link.Pause, link.Resume},
		{"stopped", behind.Pause, behind.Resume},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			r := w.relay(behind.Config(cluster.Agent), nil)
			client, err := kubernetes.NewForConfig(r.config(cluster.Admin))
			require.NoError(t, err)
			reads := client.CoreV1().RESTClient()
			before, _, err := listPods(t, reads, metav1.ListOptions{})
			require.NoError(t, err)
			f.begin()
			ended := false
			end := func() {
				if !ended {
					ended = true
					f.cease()
				}
			}
			defer end()
			began := time.Now()
			var refused, marked int
			var longest, markedAfter time.Duration
			for n := 0; time.Since(began) < 25*time.Second || marked == 0 && time.Since(began) < 90*time.Second; n++ {
				key, err := w.mark(t.Context(), nodeName(n)) // by the other server
				require.NoError(t, err)
				name := strings.TrimPrefix(key, "default/")
				asked := time.Now()
				list, _, err := listPods(t, reads, metav1.ListOptions{})
				longest = max(longest, time.Since(asked))
				if err == nil {
					require.Contains(t, podNames(list), name, "a 200 without an acknowledged write, %s after the fault", time.Since(began))
				} else {
					refused++
				}
				err = reads.Get().Namespace("default").Resource("pods").Name(name).MaxRetries(0).Do(t.Context()).Error()
				require.False(t, apierrors.IsNotFound(err), "a 404 for an object that has been written: %v", err)
				old, warnings, err := listPods(t, reads, metav1.ListOptions{ResourceVersion: "0"})
				require.NoError(t, err, "an old answer is better than none, %s after the fault", time.Since(began))
				require.GreaterOrEqual(t, len(old.Items), len(before.Items))
				if len(warnings) > 0 {
					if marked++; marked == 1 {
						markedAfter = time.Since(began)
						require.Contains(t, warnings[0], "stale since")
					}
				} else {
					require.Zero(t, marked, "the mark is gone although the server is still away")
				}
			}
			require.Positive(t, refused)
			require.Positive(t, marked, "no old answer was marked")
			end()
			returned := time.Now()
			require.Eventually(t, func() bool {
				list, warnings, err := listPods(t, reads, metav1.ListOptions{})
				if err != nil || len(warnings) > 0 {
					return false
				}
				now, _, err := listPods(t, w.client.CoreV1().RESTClient(), metav1.ListOptions{})
				require.NoError(t, err)
				return len(now.Items) == len(list.Items)
			}, time.Minute, 50*time.Millisecond)
			t.Logf("%d lists refused, none after more than %s; old answers marked after %s; all well %s after the end",
				refused, longest.Round(10*time.Millisecond), markedAfter.Round(10*time.Millisecond), time.Since(returned).Round(10*time.Millisecond))
		})
	}
}

// listPods lists once: a client that tries again by itself hides an error.
func listPods(t testing.TB, client rest.Interface, options metav1.ListOptions) (*corev1.PodList, []string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	list := &corev1.PodList{}
	result := client.Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec).MaxRetries(0).Do(ctx)
	var warnings []string
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	return list, warnings, result.Into(list)
}

func podNames(list *corev1.PodList) (names []string) {
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
