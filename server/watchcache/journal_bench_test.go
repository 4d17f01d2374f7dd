//go:build unix

package watchcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// lifelikePod is a pod of 1.7 KB in protobuf: one of a ReplicaSet of 50.
func lifelikePod(i, version int) *corev1.Pod {
	app := fmt.Sprintf("service-%03d", i/50)
	at := metav1.NewTime(time.Unix(1_790_000_000+int64(i)*977, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("%s-%05d", app, i), GenerateName: app + "-",
			UID: types.UID(fmt.Sprintf("0b0c1d2e-0000-4000-8000-%012d", i)), ResourceVersion: strconv.Itoa(version), CreationTimestamp: at,
			Labels:      map[string]string{"app": app, "tier": "front"},
			Annotations: map[string]string{"cni.example.com/address": fmt.Sprintf("10.1.%d.%d/32", i/250, i%250), "written": strconv.Itoa(version)},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", i*7%83), ServiceAccountName: app, RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), StartTime: &at},
	}
	for _, name := range []string{"web", "sidecar"} {
		c := corev1.Container{
			Name: name, Image: "registry.example/" + app + "/" + name, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("256Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: fmt.Sprintf("token-%05d", i), MountPath: "/var/run/secrets"}},
		}
		for v := range 8 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("BACKEND_%d", v), Value: fmt.Sprintf("https://%s-backend-%d.example/", app, v)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, Image: c.Image, ContainerID: fmt.Sprintf("containerd://%064d", i),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	return pod
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkJournaled is the processor time of a write to a cache of 5,000 pods, without a journal
// and with one that writes ten changes at a time, as at 2,000 a second.
func BenchmarkJournaled(b *testing.B) {
	const pods = 5000
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("journal=%t", with), func(b *testing.B) {
			j := openJournal(b, b.TempDir())
			defer j.journal.Abandon()
			var all []*corev1.Pod
			for i := range pods {
				all = append(all, lifelikePod(i, i+1))
			}
			require.NoError(b, j.cache.Replace(store.Items(all...), store.At(strconv.Itoa(pods))))
			writes := make([]*corev1.Pod, b.N)
			for i := range writes {
				writes[i] = all[i*7919%pods].DeepCopy()
				writes[i].ResourceVersion = strconv.Itoa(pods + i + 1)
			}
			if with {
				j.journal.Step(b.Context(), 4<<20)
			}
			b.ReportAllocs()
			b.ResetTimer()
			began := cpuTime(b)
			for i, p := range writes {
				if err := j.cache.PutSized(p, 1700); err != nil {
					b.Fatal(err)
				}
				if with && i%10 == 9 {
					j.journal.Step(b.Context(), 4<<20)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
			require.NoError(b, j.journal.Status().Err)
		})
	}
}

// BenchmarkUpdateBesideAJournal is how long an update takes that wakes 50 watchers, at 4,000 a
// second, by turns without a journal and beside one that runs and is begun anew a few times. The
// ratios are of the p99 and of the processor time.
func BenchmarkUpdateBesideAJournal(b *testing.B) {
	const pods, writes, watchers, pause = 5000, 20_000, 50, 250 * time.Microsecond
	var took [2][]time.Duration
	var used [2]time.Duration
	for round := range b.N {
		for _, with := range []int{round % 2, 1 - round%2} {
			j := openJournal(b, b.TempDir())
			if with == 1 {
				j.run()
			}
			var all []*corev1.Pod
			for i := range pods {
				all = append(all, lifelikePod(i, i+1))
			}
			require.NoError(b, j.cache.Replace(store.Items(all...), store.At(strconv.Itoa(pods))))
			ctx, cancel := context.WithCancel(b.Context())
			var watching sync.WaitGroup
			for range watchers {
				watching.Go(func() {
					for range j.cache.Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.Itoa(pods)}) {
					}
				})
			}
			next := make([]*corev1.Pod, writes)
			for i := range next {
				next[i] = lifelikePod(i*7919%pods, pods+i+1)
			}
			runtime.GC()
			began, at := cpuTime(b), time.Now()
			for _, p := range next {
				at = at.Add(pause)
				time.Sleep(time.Until(at))
				asked := time.Now()
				if err := j.cache.PutSized(p, 1700); err != nil {
					b.Fatal(err)
				}
				took[with] = append(took[with], time.Since(asked))
			}
			used[with] += cpuTime(b) - began
			cancel()
			watching.Wait()
			if with == 1 {
				j.stop()
				require.NoError(b, j.journal.Status().Err)
			}
		}
	}
	p99 := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)*99/100].Microseconds())
	}
	b.ReportMetric(p99(took[0]), "p99-us-without")
	b.ReportMetric(p99(took[1]), "p99-us-with")
	b.ReportMetric(p99(took[1])/p99(took[0]), "p99-ratio")
	b.ReportMetric(float64(used[1])/float64(used[0]), "cpu-ratio")
}

// BenchmarkOpenJournal opens the journal of 50,000 pods. The peak is that of the process, which has
// nothing else, with -benchtime 1x: TRIBUTARY_JOURNAL names a folder that is written by the first
// run, and read by the next.
func BenchmarkOpenJournal(b *testing.B) {
	const pods = 50_000
	folder := os.Getenv("TRIBUTARY_JOURNAL")
	if folder == "" {
		folder = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(folder, "pods.v1.journal")); err != nil {
		j := openJournal(b, folder)
		var all []*corev1.Pod
		for i := range pods {
			all = append(all, lifelikePod(i, i+1))
		}
		require.NoError(b, j.cache.Replace(store.Items(all...), store.At(strconv.Itoa(pods))))
		began := time.Now()
		j.journal.Step(b.Context(), 4<<20)
		require.NoError(b, j.journal.Status().Err)
		b.Logf("written in %s: %d bytes", time.Since(began), j.journal.Status().Bytes)
		j.journal.Abandon()
		if os.Getenv("TRIBUTARY_JOURNAL") != "" {
			return
		}
	}
	for b.Loop() {
		require.Equal(b, strconv.Itoa(pods), openJournal(b, folder).journal.Status().Restored)
	}
	status, err := os.ReadFile("/proc/self/status")
	if _, peak, ok := strings.Cut(string(status), "VmHWM:"); err == nil && ok {
		kb, _ := strconv.Atoi(strings.Fields(peak)[0])
		b.ReportMetric(float64(kb)/1024, "peak-MiB")
	}
}
