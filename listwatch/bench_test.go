package listwatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
)

// benchObjects is the number of pods in a list, and of events in a watch.
const benchObjects = 2000

var benchMedia = map[string]string{"protobuf": protobufType, "json": jsonType}

// benchConfig returns the client config of a server that answers in media, which client-go must
// request.
func benchConfig(b *testing.B, media string) (config *rest.Config, size int) {
	b.Helper()
	list := encode(b, media, v1Version, podList(benchObjects))
	config = serve(b, answerBoth(media, list, frames(b, media, v1Version, podEvents(benchObjects)...)))
	config.ContentType = media
	return config, len(list)
}

func BenchmarkList(b *testing.B) {
	for name, media := range benchMedia {
		config, size := benchConfig(b, media)
		cs := clientset(b, config)
		b.Run(name+"/tributary", func(b *testing.B) {
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				count := 0
				for _, err := range lw.List(b.Context(), metav1.ListOptions{}).Items {
					if err != nil {
						b.Fatal(err)
					}
					count++
				}
				require.Equal(b, benchObjects, count)
			}
		})
		b.Run(name+"/client-go", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				list, err := cs.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{})
				require.NoError(b, err)
				require.Len(b, list.Items, benchObjects)
			}
		})
	}
}

func BenchmarkWatch(b *testing.B) {
	for name, media := range benchMedia {
		config, _ := benchConfig(b, media)
		cs := clientset(b, config)
		b.Run(name+"/tributary", func(b *testing.B) {
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
			b.ReportAllocs()
			for b.Loop() {
				count := 0
				for _, err := range lw.Watch(b.Context(), metav1.ListOptions{}) {
					if err != nil {
						b.Fatal(err)
					}
					count++
				}
				require.Equal(b, benchObjects+1, count)
			}
		})
		b.Run(name+"/client-go", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := cs.CoreV1().Pods("").Watch(b.Context(), metav1.ListOptions{})
				require.NoError(b, err)
				count := 0
				for range w.ResultChan() {
					count++
				}
				w.Stop()
				require.Equal(b, benchObjects+1, count)
			}
		})
	}
}
