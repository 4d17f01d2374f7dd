package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/sources/manifest"
)

const kept = 5 * time.Minute

// TestValuesAreKept: a value that is not true any more finds its pod, in its newest state, for the
// time of KeepEnded: an address that a final status lacks, and a container of two restarts ago.
func TestValuesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScripted(sources.APISource)
		s := start(t, []lookup.Option{lookup.KeepEnded(kept)}, sources.Custom(api))
		ip := netip.MustParseAddr("10.0.0.7")
		api.set(t, podOf("web", address("10.0.0.7"), container("c1", "")))
		api.set(t, podOf("web", address("10.0.0.7"), container("c2", "c1")))
		api.set(t, podOf("web", address("10.0.0.7"), container("c3", "c2")))
		time.Sleep(time.Minute)
		for _, id := range []string{"c1", "c2", "c3"} {
			require.Equal(t, "web", nameOf(s.ByContainerID(id)), id)
			require.Zero(t, s.ByContainerID(id).Ended)
		}
		api.set(t, podOf("web", phase(corev1.PodFailed), container("c4", "c3")))
		require.Equal(t, corev1.PodFailed, s.ByIP(ip).Pod.Status.Phase)
		require.Equal(t, "web", nameOf(s.ByContainerID("c1")))
		time.Sleep(4*time.Minute + time.Nanosecond)
		require.Nil(t, s.ByContainerID("c1"), "it was not true for five minutes")
		require.Equal(t, "web", nameOf(s.ByContainerID("c2")))

		api.set(t)
		require.Equal(t, "web", nameOf(s.ByIP(ip)), "after the end, too")
		require.NotZero(t, s.ByName("default", "web").Ended)
		api.set(t, podOf("other", address("10.0.0.7")))
		require.Equal(t, "other", nameOf(s.ByIP(ip)), "it is true of this one")
		api.set(t, podOf("other", address("10.0.0.8")))
		require.Equal(t, "other", nameOf(s.ByIP(ip)), "it was true of this one last")
		api.set(t, podOf("other", address("10.0.0.7")), podOf("web", uid("again")))
		require.Zero(t, s.ByName("default", "web").Ended)
		require.NotZero(t, s.ByUID("uid-web").Ended)
		time.Sleep(kept + time.Nanosecond)
		require.Equal(t, "other", nameOf(s.ByIP(ip)), "a value that is true again is not forgotten")
		require.Nil(t, s.ByUID("uid-web"))
		require.Nil(t, s.ByIP(netip.MustParseAddr("10.0.0.8")))
	})
}

// TestNothingIsKeptByDefault, neither of a pod nor of one that has ended.
func TestNothingIsKeptByDefault(t *testing.T) {
	api := newScripted(sources.APISource)
	s := start(t, nil, sources.Custom(api))
	api.set(t, podOf("web", address("10.0.0.7"), container("c1", "")))
	api.set(t, podOf("web", container("c2", "")))
	require.Nil(t, s.ByIP(netip.MustParseAddr("10.0.0.7")))
	require.Nil(t, s.ByContainerID("c1"))
	require.NotNil(t, s.ByContainerID("c2"))
	api.set(t)
	require.Nil(t, s.ByName("default", "web"))
	require.Nil(t, s.ByUID("uid-web"))
}

// TestKeptPodsSurviveRestarts: their values find them for the time of KeepEnded in all, with their
// owners, while neither the API server nor a source is there.
func TestKeptPodsSurviveRestarts(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkloads(t)
		ip, mirrored := netip.MustParseAddr("10.0.0.7"), "0123456789abcdef0123456789abcdef"
		run := func(test func(*node, *scripted, *scripted)) {
			api, kubelet := newScripted(sources.APISource), newScripted(sources.KubeletSource)
			s := start(t, []lookup.Option{lookup.Owners(w.client), lookup.KeepEnded(kept)}, sources.WithLogger(logr.Discard()),
				sources.Custom(holder{api}), sources.Custom(watched{kubelet}), sources.Checkpoint(folder))
			synctest.Wait() // the checkpoint is read
			test(s, api, kubelet)
			s.stop()
		}
		running := podOf("running", container("c2", ""))
		var ended time.Time
		run(func(s *node, api, kubelet *scripted) {
			web := podOf("web", address("10.0.0.7"), container("w1", ""), ownedBy(w.job("nightly-1", "nightly")))
			api.set(t, web, podOf("running", container("c1", "")), podOf("etcd", uid("mirror"), annotation(manifest.MirrorAnnotation, mirrored)))
			kubelet.set(t, podOf("web", address("10.0.0.9"), container("w1", "")), podOf("alone"))
			synctest.Wait()
			require.Equal(t, "CronJob nightly", owner(s.Lookup, web))
			time.Sleep(time.Minute)
			kubelet.set(t)
			api.set(t, running)
			ended = time.Now()
		})
		file := filepath.Join(folder, "node-1.ended")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		for range 2 {
			time.Sleep(time.Minute)
			run(func(s *node, _, _ *scripted) {
				for what, pod := range map[string]*lookup.Pod{
					"address": s.ByIP(ip), "the kubelet's": s.ByIP(netip.MustParseAddr("10.0.0.9")), "container": s.ByContainerID("w1"),
					"uid": s.ByUID("uid-web"), "name": s.ByName("default", "web"),
				} {
					require.Equal(t, "web", nameOf(pod), what)
					require.True(t, ended.Equal(pod.Ended), what)
					require.Equal(t, "api", pod.PodFrom)
					require.Equal(t, "CronJob nightly", owner(s.Lookup, pod.Pod))
				}
				require.Equal(t, "etcd", nameOf(s.ByCgroup("/kubepods/pod"+mirrored)))
				require.Equal(t, "alone", nameOf(s.ByName("default", "alone")))
				require.Empty(t, s.Merged())
			})
		}
		run(func(s *node, api, kubelet *scripted) {
			kubelet.set(t)
			api.set(t, running)
			require.Equal(t, "running", nameOf(s.ByContainerID("c1")), "an earlier container of a pod that runs")
			require.Zero(t, s.ByContainerID("c1").Ended)
			require.Zero(t, s.ByUID("uid-running").Ended)
			time.Sleep(3*time.Minute + time.Nanosecond)
			require.Nil(t, s.ByIP(ip))
			require.Nil(t, s.ByContainerID("c1"))
			require.NotNil(t, s.ByContainerID("c2"))
			asked := w.asked()
			api.set(t, running, podOf("new"))
			synctest.Wait()
			require.Equal(t, asked, w.asked())
		})
		require.NoError(t, os.WriteFile(file, []byte("TRBENDS\x02 and then nothing of use, but long enough to be looked at"), 0o600))
		run(func(s *node, _, _ *scripted) {
			require.ErrorContains(t, ownersStatus(s).Problems[0], "checkpoint "+file+" is not used: its checksum is wrong")
		})
	})
}

// TestKeptPodsAreBounded: 10,000 losses are kept, those that came last.
func TestKeptPodsAreBounded(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := func(test func(*node, *scripted)) {
			api := newScripted(sources.APISource)
			s := start(t, []lookup.Option{lookup.KeepEnded(time.Hour)}, sources.Custom(api), sources.Checkpoint(folder))
			synctest.Wait() // the checkpoint is read
			test(s, api)
			s.stop()
		}
		check := func(s *node) {
			t.Helper()
			require.Nil(t, s.ByUID("uid-p-0"))
			require.Nil(t, s.ByUID("uid-p-499"))
			require.NotNil(t, s.ByUID("uid-p-500"))
			require.NotNil(t, s.ByUID("uid-p-10499"))
		}
		run(func(s *node, api *scripted) {
			for batch := range 21 {
				var pods []*corev1.Pod
				for i := range 500 {
					pods = append(pods, podOf(fmt.Sprint("p-", batch*500+i)))
				}
				api.set(t, pods...)
				api.set(t)
				time.Sleep(time.Second)
			}
			check(s)
		})
		run(func(s *node, _ *scripted) { check(s) })
		require.NoError(t, os.WriteFile(filepath.Join(folder, "node-1.ended"), []byte("cut off"), 0o600))
		run(func(s *node, _ *scripted) {
			status := s.Status()[1]
			require.Equal(t, "ended pods", status.Source)
			require.ErrorContains(t, status.Problems[0], "node-1.ended is not used: it has 7 bytes: it is cut off")
			require.Nil(t, s.ByUID("uid-p-10499"))
		})
	})
}

// TestStaticPods: the UID by which the kubelet runs a static pod, and its cgroup, find the pod by
// any source that has that UID, and a manifest has it if it names one. See the package
// documentation.
func TestStaticPods(t *testing.T) {
	file, api, kubelet := newScripted(sources.FileSource), newScripted(sources.APISource), newScripted(sources.KubeletSource)
	s := start(t, nil, sources.Custom(file), sources.Custom(holder{api}), sources.Custom(watched{kubelet}))
	found := func() []string {
		return []string{nameOf(s.ByUID(etcdUID)), nameOf(s.ByCgroup("/kubepods/burstable/pod" + etcdUID)), nameOf(s.ByName("default", "etcd-node-1"))}
	}
	decode := func(metadata string) *corev1.Pod {
		decoder := manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
		pods, rejected := decoder.Decode("etcd.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: etcd"+metadata+"}\nspec: {containers: [{name: main, image: etcd}]}\n"))
		require.Empty(t, rejected)
		return pods[0]
	}
	ours := decode("")
	require.NotEqual(t, types.UID(etcdUID), ours.UID)
	file.set(t, ours)
	require.Equal(t, []string{"", "", "etcd-node-1"}, found(), "the file alone: by its name")
	all := []string{"etcd-node-1", "etcd-node-1", "etcd-node-1"}
	api.set(t, podOf("etcd-node-1", uid("mirror"), annotation(manifest.MirrorAnnotation, etcdUID)))
	require.Equal(t, all, found(), "with its mirror")
	api.set(t)
	require.Equal(t, []string{"", "", "etcd-node-1"}, found())
	kubelet.set(t, podOf("etcd-node-1", uid(etcdUID), annotation(manifest.SourceAnnotation, "file")))
	require.Equal(t, all, found(), "with the kubelet")
	kubelet.set(t)
	file.set(t, decode(", uid: "+etcdUID))
	require.Equal(t, all, found(), "with a UID in the manifest")
}

// TestKeptValuesAgainstAModel: after any changes, each value finds a pod of which it is true, or
// else one of which it was true last, if that is not too long ago.
func TestKeptValuesAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		api := newScripted(sources.APISource)
		s := start(t, []lookup.Option{lookup.KeepEnded(kept)}, sources.Custom(api))
		defer s.stop()
		last := map[string]map[types.UID]time.Time{} // of each address, and the pods that had it
		for range 400 {
			var pods []*corev1.Pod
			now := map[string][]types.UID{}
			for i := range 6 {
				if random.IntN(3) == 0 {
					continue
				}
				pod := podOf(fmt.Sprint("p", i), uid(fmt.Sprint(i, "-", random.IntN(8)/7)))
				if random.IntN(4) > 0 {
					ip := fmt.Sprint("10.0.0.", random.IntN(8)+1)
					address(ip)(pod)
					now[ip] = append(now[ip], pod.UID)
					if last[ip] == nil {
						last[ip] = map[types.UID]time.Time{}
					}
				}
				pods = append(pods, pod)
			}
			for ip, had := range last { // what was true until this moment, or is from now on
				for uid, at := range had {
					if at.IsZero() {
						had[uid] = time.Now()
					}
				}
				for _, uid := range now[ip] {
					had[uid] = time.Time{}
				}
			}
			api.set(t, pods...)
			for ip, had := range last {
				found := s.ByIP(netip.MustParseAddr(ip))
				newest := time.Time{}
				for _, at := range had {
					if at.After(newest) {
						newest = at
					}
				}
				switch {
				case len(now[ip]) > 0:
					require.NotNil(t, found, ip)
					require.True(t, slices.Contains(now[ip], found.Pod.UID), ip)
				case time.Since(newest) <= kept:
					require.NotNil(t, found, ip)
					require.Equal(t, newest, had[found.Pod.UID], ip)
				default:
					require.Nil(t, found, ip)
				}
			}
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Minute))))
		}
	})
}
