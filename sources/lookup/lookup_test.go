package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/sources/manifest"
)

func address(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: text}} }
}

func container(id, before string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{ContainerID: id}}
		if before != "" {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: before}
		}
	}
}

// nameOf is the name of a pod that was found.
func nameOf(p *lookup.Pod) string {
	if p == nil {
		return ""
	}
	return p.Pod.Name
}

const (
	webUID  = "0c6f5a1e-9d3b-4a57-8f10-2b1d6c7e8f90"
	etcdUID = "5d41402abc4b2a76b9719d911017c592" // of the kubelet
)

// TestLookups: each value finds its pod, in each form that programs have it in.
func TestLookups(t *testing.T) {
	api, file := newScripted(sources.APISource), newScripted(sources.FileSource)
	r := start(t, nil, sources.Custom(holder{api}), sources.Custom(file))
	api.set(t,
		podOf("web", uid(webUID), address("10.0.0.7"), container("containerd://c2", "containerd://c1")),
		podOf("proxy", address("192.0.2.1"), func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		podOf("etcd", uid("mirror"), annotation(manifest.MirrorAnnotation, etcdUID)))
	file.set(t, podOf("etcd", uid("ours")))
	for id, want := range map[types.UID]string{webUID: "web", "ours": "etcd", "mirror": "etcd", etcdUID: "etcd", "": "", "other": ""} {
		require.Equal(t, want, nameOf(r.ByUID(id)), id)
	}
	for id, want := range map[string]string{"c2": "web", "containerd://c2": "web", "c1": "web", "c3": "", "": ""} {
		require.Equal(t, want, nameOf(r.ByContainerID(id)), id)
	}
	for ip, want := range map[string]string{"10.0.0.7": "web", "::ffff:10.0.0.7": "web", "192.0.2.1": "", "10.0.0.8": ""} {
		require.Equal(t, want, nameOf(r.ByIP(netip.MustParseAddr(ip))), ip)
	}
	for name, want := range map[string]string{"web": "web", "etcd": "etcd", "other": "", "": "", strings.Repeat("n", 300): ""} {
		pod := r.ByName("default", name)
		require.Equal(t, want, nameOf(pod), name)
	}
	require.Nil(t, r.ByName("other", "web"))
	for path, want := range map[string]string{
		// a container of web is a node, of whose pods nothing is known
		"/kubepods/pod" + webUID + "/c2/kubelet/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/c9": "web",
		// or is known
		"/kubepods/pod11111111-2222-3333-4444-555555555555/c2/kubelet/kubepods/pod" + webUID + "/c2": "web",
		"/kubepods/burstable/pod" + webUID:   "web",
		"/kubepods/pod" + webUID + "/c2":     "web",
		"/kubepods/besteffort/pod" + etcdUID: "etcd",
		"/system.slice/ssh.service":          "",
		"/kubepods.slice":                    "",
		"/kubepods/pod" + webUID[:35]:        "",
		"/kubepods/pod" + webUID + "0":       "",
		"":                                   "",
		"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0c6f5a1e_9d3b_4a57_8f10_2b1d6c7e8f90.slice/cri-containerd-0123.scope": "web",
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod0c6f5a1e_9d3b_4a57_8f10_2b1d6c7e8f90.slice":                                              "web",
	} {
		require.Equal(t, want, nameOf(r.ByCgroup(path)), path)
	}
	require.NotNil(t, r.ByUID("mirror").Mirror)
	require.NoError(t, r.Remove(sources.APISource))
	require.Empty(t, nameOf(r.ByUID(webUID)))
	require.Equal(t, "etcd", nameOf(r.ByUID("ours")))
	require.Empty(t, nameOf(r.ByUID("mirror")))
}

// TestLookupsAreMerged: after any changes of any sources, a look-up finds what Merged has.
func TestLookupsAreMerged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := []*scripted{newScripted("a"), newScripted("b"), newScripted("c")}
	r := start(t, nil, sources.Custom(holder{all[0]}), sources.Custom(all[1]), sources.Custom(watched{all[2]}))
	for range 300 {
		var pods []*corev1.Pod
		for name := range 6 {
			if random.IntN(2) == 0 {
				continue
			}
			edits := []func(*corev1.Pod){
				uid(fmt.Sprintf("%032x", random.IntN(12)+1)), address(fmt.Sprint("10.0.0.", random.IntN(6)+1)),
				container(fmt.Sprint("c", random.IntN(9)), ""), version(fmt.Sprint(random.IntN(3) + 1)), created(int64(random.IntN(3))),
			}
			if random.IntN(4) == 0 {
				edits = append(edits, annotation(manifest.MirrorAnnotation, fmt.Sprintf("%032x", random.IntN(12)+1)))
			}
			pods = append(pods, podOf(fmt.Sprint("p", name), edits...))
		}
		source := all[random.IntN(len(all))]
		source.set(t, pods...)
		merged := r.Merged()
		check := func(value string, has func(*corev1.Pod) bool, found *lookup.Pod) {
			var want []sources.MergedPod
			for _, p := range merged {
				if slices.ContainsFunc([]*corev1.Pod{p.Pod, p.Live, p.Mirror}, func(pod *corev1.Pod) bool { return pod != nil && has(pod) }) {
					want = append(want, p)
				}
			}
			require.Equal(t, len(want) > 0, found != nil, value)
			if found != nil {
				require.Contains(t, want, found.MergedPod, value)
			}
		}
		for i := range 13 {
			id := fmt.Sprintf("%032x", i+1)
			hasUID := func(p *corev1.Pod) bool { return string(p.UID) == id || p.Annotations[manifest.MirrorAnnotation] == id }
			check(id, hasUID, r.ByUID(types.UID(id)))
			check("cgroup "+id, hasUID, r.ByCgroup("/kubepods/pod"+id))
			ip := fmt.Sprint("10.0.0.", i+1)
			check(ip, func(p *corev1.Pod) bool { return p.Status.PodIPs[0].IP == ip }, r.ByIP(netip.MustParseAddr(ip)))
			c := fmt.Sprint("c", i)
			check(c, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].ContainerID == c }, r.ByContainerID(c))
		}
	}
}

// TestEndedPodsAreKept: for as long as KeepEnded says, and behind a pod that runs.
func TestEndedPodsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScripted(sources.APISource)
		s := start(t, []lookup.Option{lookup.KeepEnded(5 * time.Minute)}, sources.Custom(api))
		set := func(pods ...*corev1.Pod) {
			api.set(t, pods...)
			synctest.Wait()
		}
		ip := netip.MustParseAddr("10.0.0.7")
		set(podOf("old", address("10.0.0.7")))
		set()
		ended := time.Now()
		time.Sleep(5 * time.Minute)
		for _, found := range []*lookup.Pod{s.ByIP(ip), s.ByUID("uid-old")} {
			require.NotNil(t, found)
			require.Equal(t, "old", found.Pod.Name)
			require.Equal(t, ended, found.Ended)
		}
		require.Empty(t, s.Merged())
		set(podOf("new", address("10.0.0.7")))
		require.Equal(t, "new", s.ByIP(ip).Pod.Name)
		require.Zero(t, s.ByIP(ip).Ended)
		require.NotNil(t, s.ByUID("uid-old"))
		time.Sleep(time.Nanosecond)
		require.Nil(t, s.ByUID("uid-old"), "five minutes are over")
		set(podOf("new", address("10.0.0.7"), phase(corev1.PodSucceeded)), podOf("third", address("10.0.0.7")))
		require.Equal(t, "third", s.ByIP(ip).Pod.Name, "a finished pod has left its address")
		set(podOf("new", uid("recreated")))
		require.NotZero(t, s.ByUID("uid-new").Ended)
		require.Zero(t, s.ByUID("recreated").Ended)
	})
}

// TestLookupsAllocateNothing, with readers while the sources change.
func TestLookupsAllocateNothing(t *testing.T) {
	api := newScripted(sources.APISource)
	r := start(t, nil, sources.Custom(api))
	api.set(t, podOf("web", uid(webUID), address("10.0.0.7"), container("containerd://c2", "")))
	ip := netip.MustParseAddr("10.0.0.7")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if r.ByUID(webUID) == nil || r.ByContainerID("containerd://c2") == nil || r.ByIP(ip) == nil ||
			r.ByCgroup("/kubepods/burstable/pod"+webUID+"/c2") == nil || r.ByName("default", "web") == nil {
			panic("not found")
		}
	}))
}

// BenchmarkLookup has eight readers, on up to eight processors.
func BenchmarkLookup(b *testing.B) {
	const n = 110
	var pods []*corev1.Pod
	table := map[types.UID]*corev1.Pod{}
	for i := range n {
		pod := podOf(fmt.Sprint("p", i), uid(fmt.Sprintf("%032x", i)))
		pods = append(pods, pod)
		table[pod.UID] = pod
	}
	api := newScripted(sources.APISource)
	s := start(b, nil, sources.Custom(api))
	api.set(b, pods...)
	read := func(b *testing.B, find func(types.UID) bool) {
		b.ReportAllocs()
		b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if !find(pods[i%n].UID) {
					b.Error("not found")
				}
			}
		})
	}
	b.Run("tributary", func(b *testing.B) {
		read(b, func(uid types.UID) bool { return s.ByUID(uid) != nil })
	})
	b.Run("map+RWMutex", func(b *testing.B) {
		var mu sync.RWMutex
		read(b, func(uid types.UID) bool {
			mu.RLock()
			defer mu.RUnlock()
			_, ok := table[uid]
			return ok
		})
	})
}
