package kubelet_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/sources"
	source "github.com/tributary-go/tributary/sources/kubelet"
)

const patience = 30 * time.Second // longer than any of these takes

// podsAPI is the kubelet's own PodsAPI, a plain client of it, and our source.
type podsAPI struct {
	kubelet
	t       *testing.T
	release cluster.Release
	socket  string
	plain   api.PodsClient
	pid     int
	stop    func() // ends the kubelet
	*sources.Sources
}

// withEachKubelet runs test with the kubelet of each release.
func withEachKubelet(t *testing.T, test func(*testing.T, *podsAPI)) {
	for _, release := range []cluster.Release{cluster.Kube136, cluster.Kube137} {
		t.Run(string(release), func(t *testing.T) { test(t, startPodsAPI(t, release)) })
	}
}

func startPodsAPI(t *testing.T, of cluster.Release) *podsAPI {
	t.Helper()
	k := &podsAPI{t: t, release: of, socket: filepath.Join(t.TempDir(), "s")}
	k.start()
	connection, err := grpc.NewClient("unix:"+k.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	k.plain = api.NewPodsClient(connection)
	t.Cleanup(func() {
		require.NoError(t, connection.Close())
		k.stop()
	})
	return k
}

// start begins the kubelet, which has no pods.
func (k *podsAPI) start() {
	k.t.Helper()
	command := exec.Command(cluster.PodsAPI(k.t, k.release), k.socket) // it ends with its input
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(k.t, err)
	out, err := command.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, command.Start())
	k.pid = command.Process.Pid
	k.kubelet = kubelet{in, bufio.NewReader(out)}
	k.stop = func() {
		require.NoError(k.t, in.Close())
		require.NoError(k.t, command.Wait())
	}
}

// follow runs our source.
func (k *podsAPI) follow(options ...source.Option) {
	options = append(options, source.WithSocket(k.socket), source.WithInterval(time.Second))
	k.Sources = sources.New("node-1", sources.WithLogger(logr.Discard()), source.PodsAPI(options...))
	ctx, cancel := context.WithCancel(k.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	k.t.Cleanup(func() {
		cancel()
		for range k.Updates() {
		}
		require.NoError(k.t, <-ended)
	})
}

// tell returns the number of events that the kubelet told nobody.
func (k *podsAPI) tell(command map[string]any) (lost int64) {
	k.t.Helper()
	var answer struct {
		Refused string `json:"refused"`
		Lost    int64  `json:"lost"`
	}
	k.answer(k.t, command, &answer)
	require.Empty(k.t, answer.Refused)
	return answer.Lost
}

// put has the kubelet hear of pods.
func (k *podsAPI) put(pods ...*corev1.Pod) {
	k.t.Helper()
	for _, pod := range pods {
		k.tell(map[string]any{"pod": pod})
	}
}

// started gives a pod a status: its container started at this second.
func (k *podsAPI) started(uid string, second int64) {
	k.t.Helper()
	k.tell(map[string]any{"uid": uid, "status": second})
}

// update is the next update of our source.
func (k *podsAPI) update() sources.PodUpdate {
	k.t.Helper()
	select {
	case u := <-k.Updates():
		return u
	case <-time.After(patience):
		require.FailNow(k.t, "no update", "%+v", k.Status())
		return sources.PodUpdate{}
	}
}

// expect is the next update: its operation and pods.
func (k *podsAPI) expect(want string) {
	k.t.Helper()
	u := k.update()
	line := string(u.Op)
	for _, pod := range u.Pods {
		line += " " + pod.Name + pod.Labels["label"]
	}
	require.Equal(k.t, want, line)
}

// watch opens a watch of a plain client, and returns the pods of its initial list.
func (k *podsAPI) watch() (watch api.Pods_WatchPodsClient, initial map[string]*corev1.Pod) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	k.t.Cleanup(cancel)
	watch, err := k.plain.WatchPods(ctx, &api.WatchPodsRequest{})
	require.NoError(k.t, err)
	initial = map[string]*corev1.Pod{}
	for {
		event, err := watch.Recv()
		require.NoError(k.t, err)
		if event.Type == api.EventType_INITIAL_SYNC_COMPLETE {
			return watch, initial
		}
		pod := decoded(k.t, event.Pod)
		initial[pod.Name] = pod
	}
}

func (k *podsAPI) next(watch api.Pods_WatchPodsClient) (api.EventType, *corev1.Pod) {
	k.t.Helper()
	event, err := watch.Recv()
	require.NoError(k.t, err)
	return event.Type, decoded(k.t, event.Pod)
}

// listed is the names of a list of a plain client.
func (k *podsAPI) listed() (names []string) {
	k.t.Helper()
	list, err := k.plain.ListPods(k.t.Context(), &api.ListPodsRequest{})
	require.NoError(k.t, err)
	for _, data := range list.Pods {
		names = append(names, decoded(k.t, data).Name)
	}
	slices.Sort(names)
	return names
}

func decoded(t *testing.T, data []byte) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	require.NoError(t, pod.Unmarshal(data))
	return pod
}

// startOf is the second at which the container of a pod started, or 0.
func startOf(pod *corev1.Pod) int64 {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
		return 0
	}
	return pod.Status.ContainerStatuses[0].State.Running.StartedAt.Unix()
}

func runningPod(name, label string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7", Labels: map[string]string{"label": label},
			Annotations: map[string]string{"kubernetes.io/config.source": "api"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// TestPodsAPITellsNoChangeOfLabels: the kubelet tells a watcher of statuses alone.
func TestPodsAPITellsNoChangeOfLabels(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		k.put(runningPod("web", "-old"), runningPod("mark", ""))
		k.follow()
		k.expect("ADD mark web-old")
		watch, _ := k.watch()
		k.put(runningPod("web", "-new"))
		k.started("mark", 1)
		_, pod := k.next(watch)
		require.Equal(t, "mark", pod.Name, "there is no event of the labels")
		var got []string
		for range 2 { // in either order: one by an event, one by a list
			u := k.update()
			got = append(got, string(u.Op)+" "+u.Pods[0].Name+u.Pods[0].Labels["label"])
		}
		require.ElementsMatch(t, []string{"RECONCILE mark", "UPDATE web-new"}, got)
	})
}

// TestPodsAPIListsWhatItToldDeleted: lists and new watches hold a pod after its DELETED.
func TestPodsAPIListsWhatItToldDeleted(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		k.put(runningPod("web", ""), runningPod("other", ""))
		k.follow()
		k.expect("ADD other web")
		watch, _ := k.watch()
		k.started("web", 1)
		k.expect("RECONCILE web")
		k.tell(map[string]any{"uid": "web", "terminated": true})
		for kind := api.EventType_MODIFIED; kind != api.EventType_DELETED; {
			kind, _ = k.next(watch)
		}
		k.expect("REMOVE web")
		require.Equal(t, []string{"other", "web"}, k.listed(), "the kubelet still lists it")
		_, initial := k.watch()
		require.Contains(t, initial, "web", "a new watch begins with it")
		contact := k.Status()[0].LastContact
		require.Eventually(t, func() bool { return k.Status()[0].LastContact.After(contact.Add(2 * time.Second)) }, patience, time.Millisecond)
		k.put(runningPod("end", "")) // nothing else comes before it
		k.expect("ADD end")
	})
}

// TestPodsAPIDropsEvents: a slow client is cut off, and a fast kubelet drops events for everybody.
func TestPodsAPIDropsEvents(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		large := runningPod("web", "")
		// No buffer of gRPC has room for many of these.
		large.Spec.Containers[0].Args = []string{string(make([]byte, 8<<10))}
		k.put(large)
		k.follow()
		k.expect("ADD web")
		watch, _ := k.watch()
		const burst = 20_000
		require.NotZero(t, k.tell(map[string]any{"uid": "web", "status": 1, "burst": burst}), "events that nobody was told")
		events, cut := 0, error(nil)
		for cut == nil {
			if _, cut = watch.Recv(); cut == nil {
				events++
			}
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(cut))
		require.Less(t, events, burst)
		for u := k.update(); startOf(u.Pods[0]) != burst+1; u = k.update() {
			require.Equal(t, sources.Reconcile, u.Op)
		}
		require.Eventually(t, func() bool { return k.SafeToPrune(sources.KubeletSource) }, patience, time.Millisecond)
	})
}

// TestPodsAPITellsOldEvents: a watch is registered before its initial list is made, so that events
// of before that list come after it. Our states do not go back.
func TestPodsAPITellsOldEvents(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		many := []*corev1.Pod{runningPod("web", "")}
		for i := range 200 { // so that the list takes its time
			pod := runningPod("z", "")
			pod.Name += string(rune('a'+i%26)) + string(rune('a'+i/26))
			pod.UID = types.UID(pod.Name)
			many = append(many, pod)
		}
		k.put(many...)
		k.follow()
		k.update()
		stop, stopped := make(chan struct{}), make(chan struct{})
		second := int64(0)
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					second++
					k.started("web", second)
				}
			}
		}()
		read := make(chan bool)
		go func() {
			last, ordered := int64(0), true
			for u := range k.Updates() {
				for _, pod := range u.Pods {
					if pod.Name == "web" {
						ordered = ordered && startOf(pod) >= last
						last = startOf(pod)
					}
				}
				if u.Pods[0].Name == "end" {
					break
				}
			}
			read <- ordered
		}()
		old := false
		for began := time.Now(); !old && time.Since(began) < patience; {
			ctx, cancel := context.WithCancel(t.Context())
			watch, err := k.plain.WatchPods(ctx, &api.WatchPodsRequest{})
			require.NoError(t, err)
			listed := int64(0)
			for synced := false; ; {
				event, err := watch.Recv()
				if err != nil { // it was too slow
					require.NotErrorIs(t, err, io.EOF)
					break
				}
				if event.Type == api.EventType_INITIAL_SYNC_COMPLETE {
					synced = true
					continue
				}
				pod := decoded(t, event.Pod)
				if pod.Name == "web" {
					if !synced {
						listed = startOf(pod)
						continue
					}
					old = startOf(pod) < listed
					break
				}
			}
			cancel()
		}
		close(stop)
		<-stopped
		require.True(t, old, "the kubelet has told an event that is older than its list")
		k.put(runningPod("end", ""))
		require.True(t, <-read)
	})
}

// TestPodsAPIHasNoVersions: one resource version has many statuses, and nothing comes while nothing
// happens. Each status is told, and lists are the sign of life.
func TestPodsAPIHasNoVersions(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		k.put(runningPod("web", ""))
		k.follow()
		k.expect("ADD web")
		watch, _ := k.watch()
		for second := range int64(3) {
			k.started("web", second+1)
			_, pod := k.next(watch)
			require.Equal(t, "7", pod.ResourceVersion)
			u := k.update()
			require.Equal(t, sources.Reconcile, u.Op)
			require.Equal(t, second+1, startOf(u.Pods[0]))
		}
		quiet := k.Status()[0].LastContact
		require.Eventually(t, func() bool { return k.Status()[0].LastContact.After(quiet.Add(2 * time.Second)) }, patience, time.Millisecond)
	})
}

// TestPodsAPIThatIsNotReady: before it has heard all its sources, the kubelet 1.36 lists the pods
// that it has; 1.37 refuses with FAILED_PRECONDITION, which is no empty list.
func TestPodsAPIThatIsNotReady(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		k.tell(map[string]any{"ready": false})
		k.put(runningPod("web", ""))
		if k.release == cluster.Kube136 {
			require.Equal(t, []string{"web"}, k.listed())
			return
		}
		refused := func() bool {
			problems := k.Status()[0].Problems
			return len(problems) > 0 && strings.Contains(problems[0].Error(), "the kubelet has not read its own sources yet")
		}
		k.follow()
		require.Eventually(t, refused, patience, time.Millisecond)
		require.False(t, k.Status()[0].Seen)
		k.tell(map[string]any{"ready": true})
		k.expect("ADD web")
		require.Eventually(t, func() bool { return k.SafeToPrune(sources.KubeletSource) }, patience, time.Millisecond)
		k.tell(map[string]any{"ready": false})
		require.Eventually(t, refused, patience, time.Millisecond)
		require.False(t, k.SafeToPrune(sources.KubeletSource))
		require.Len(t, k.Merged(), 1)
	})
}
