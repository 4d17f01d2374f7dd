package sources_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// fadingServer is an API server that can be away: it cuts every connection then.
type fadingServer struct {
	pods   *listwatchtest.Origin[*corev1.Pod]
	client rest.Interface
	away   atomic.Bool
	empty  atomic.Bool // a cache before it answers, and knows nothing
}

func newFadingServer(t *testing.T) *fadingServer {
	api := listwatchtest.NewServer(t)
	s := &fadingServer{pods: listwatchtest.Serve(api, listwatchtest.Pods()).Origin()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		if s.empty.Load() {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Get("watch") != "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"0"},"items":[]}`))
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { api.Origin().Close(); server.Close() })
	var err error
	s.client, err = listwatch.NewRESTClient(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return s
}

func (s *fadingServer) create(t *testing.T, name string) {
	_, err := s.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	require.NoError(t, err)
}

// agent is one run with a checkpoint.
func (s *fadingServer) agent(t *testing.T, folder string) (pods *sources.Sources, stop func()) {
	pods = sources.New("node-1", sources.Checkpoint(folder),
		sources.APIServer(s.client, reflector.WithBackoff(time.Millisecond, 10*time.Millisecond)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	return pods, func() {
		cancel()
		for range pods.Updates() {
		}
		require.NoError(t, <-ended)
	}
}

func tell(u sources.PodUpdate) (text string) {
	text = string(u.Op)
	if u.Restored {
		text += " restored"
	}
	for _, pod := range u.Pods {
		text += " " + pod.Name
	}
	return text
}

// TestRestartWithoutTheServer: an agent that restarts while the API server is away has its pods
// from the checkpoint, knows that they are, and is told the difference when the server is back.
func TestRestartWithoutTheServer(t *testing.T) {
	folder := t.TempDir()
	s := newFadingServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(t, name)
	}
	first, stop := s.agent(t, folder)
	require.Equal(t, "ADD a b c", tell(<-first.Updates()))
	stop() // a state that has not been written by now is written here

	s.away.Store(true)
	second, stop := s.agent(t, folder)
	require.Equal(t, "ADD restored a b c", tell(<-second.Updates()))
	require.False(t, second.SafeToPrune(sources.APISource))
	status := second.Status()[0]
	require.True(t, status.Restored)
	require.False(t, status.Seen)
	select {
	case <-second.Synced():
		t.Fatal("a checkpoint is not the API server")
	default:
	}

	_, err := s.pods.Remove("default", "b")
	require.NoError(t, err)
	s.create(t, "d")
	s.away.Store(false)
	require.Equal(t, "REMOVE b", tell(<-second.Updates()))
	require.Equal(t, "ADD d", tell(<-second.Updates()))
	<-second.Synced()
	require.Eventually(t, func() bool { return second.SafeToPrune(sources.APISource) }, time.Minute, time.Millisecond)
	require.False(t, second.Status()[0].Restored)
	stop()

	third, stop := s.agent(t, folder)
	require.Equal(t, "ADD restored a c d", tell(<-third.Updates()))
	require.Equal(t, "ADD", tell(<-third.Updates()), "nothing has changed: the first state of the server itself is told all the same")
	stop()
}

// TestAnEmptyCacheIsNoTruth: a cache between agent and server that has lost its content answers
// with an empty list of version 0. Of a restored agent it takes no pod, and a new agent, which has
// nothing to hold against it, must not take that for the truth.
func TestAnEmptyCacheIsNoTruth(t *testing.T) {
	folder := t.TempDir()
	s := newFadingServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(t, name)
	}
	first, stop := s.agent(t, folder)
	require.Equal(t, "ADD a b c", tell(<-first.Updates()))
	stop()

	s.empty.Store(true)
	second, stop := s.agent(t, folder)
	require.Equal(t, "ADD restored a b c", tell(<-second.Updates()))
	require.Eventually(t, func() bool {
		read := second.Status()[0].Reflector // nil until it begins
		return read != nil && read.Failures > 10 && second.Status()[0].Pending == 0 &&
			strings.Contains(second.Ready(time.Hour).Error(), "the list has no resource version, and the copy has one")
	}, time.Minute, time.Millisecond)
	require.Len(t, second.Merged(), 3)
	require.False(t, second.SafeToPrune(sources.APISource))

	fresh, stopFresh := s.agent(t, t.TempDir())
	require.Equal(t, "ADD", tell(<-fresh.Updates()))
	require.Eventually(t, func() bool { // between the failures of its watches
		return strings.Contains(fresh.Ready(time.Hour).Error(), "the server's list has no resource version") &&
			fresh.Status()[0].Verdict(0).Class == reflector.MayBeOld
	}, time.Minute, time.Millisecond)
	require.False(t, fresh.SafeToPrune(sources.APISource))

	s.empty.Store(false)
	require.Equal(t, "ADD", tell(<-second.Updates()))
	for read := 0; read < 3; { // by a list or by events
		read += len((<-fresh.Updates()).Pods)
	}
	require.Eventually(t, func() bool {
		return second.SafeToPrune(sources.APISource) && fresh.SafeToPrune(sources.APISource)
	}, time.Minute, time.Millisecond) // a probe comes within 14 s
	stop()
	stopFresh()
}

// TestCheckpointsOfTwoServers: the pods of one server are never taken for those of the other.
func TestCheckpointsOfTwoServers(t *testing.T) {
	folder := t.TempDir()
	east, west := newFadingServer(t), newFadingServer(t)
	east.create(t, "e")
	west.create(t, "w")
	often := reflector.WithBackoff(time.Millisecond, 10*time.Millisecond)
	run := func() (told []string) {
		pods := sources.New("node-1", sources.Checkpoint(folder),
			sources.APIServer(east.client, often), sources.APIServer(west.client, often).Named("../west"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- pods.Run(ctx) }()
		for range 2 {
			u := <-pods.Updates()
			told = append(told, u.Source+" "+tell(u))
		}
		require.ErrorContains(t, pods.Add(sources.APIServer(west.client)), `two API servers are named "api"`)
		cancel()
		for range pods.Updates() {
		}
		require.NoError(t, <-ended)
		return told
	}
	require.ElementsMatch(t, []string{"api ADD e", "../west ADD w"}, run())
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(folder, "node-1.pods"), filepath.Join(folder, "node-1_..%2Fwest.pods")}, files)
	east.away.Store(true)
	west.away.Store(true)
	require.ElementsMatch(t, []string{"api ADD restored e", "../west ADD restored w"}, run())

	twins := sources.New("node-1", sources.Checkpoint(folder), sources.APIServer(east.client), sources.APIServer(west.client))
	require.ErrorContains(t, twins.Run(t.Context()), "tell them apart with Named")
}

func TestDamagedCheckpointIsAProblemAndThenReplaced(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "node-1.pods")
	require.NoError(t, os.WriteFile(path, []byte("TRBPODS\x01 and then nothing of use, but long enough to be looked at"), 0o600))
	s := newFadingServer(t)
	s.create(t, "a")
	s.away.Store(true)
	pods, stop := s.agent(t, folder)
	require.Eventually(t, func() bool {
		for _, problem := range pods.Status()[0].Problems {
			if problem.Error() == "checkpoint "+path+" is not used: its checksum is wrong: it is cut off or damaged" {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	s.away.Store(false)
	require.Equal(t, "ADD a", tell(<-pods.Updates()))
	require.Eventually(t, func() bool { return len(pods.Status()[0].Problems) == 0 }, time.Minute, time.Millisecond)
	stop()
}

// TestRunNeedsTheFolderOfCheckpoints: a missing folder ends Run. A folder that goes away later is a
// problem, which is logged once however many states cannot be saved.
func TestRunNeedsTheFolderOfCheckpoints(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	s := newFadingServer(t)
	s.create(t, "a")
	pods := sources.New("node-1", sources.Checkpoint(folder), sources.APIServer(s.client))
	require.EqualError(t, pods.Run(t.Context()),
		"sources: Checkpoint: the folder "+folder+" does not exist: make it before the agent starts")

	require.NoError(t, os.Mkdir(folder, 0o700))
	var lines atomic.Int64
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, "checkpoint") {
			lines.Add(1)
		}
	}, funcr.Options{})
	pods = sources.New("node-1", sources.Checkpoint(folder), sources.APIServer(s.client), sources.WithLogger(log))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	require.Equal(t, "ADD a", tell(<-pods.Updates()))
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(folder, "node-1.pods")); return err == nil }, time.Minute, time.Millisecond)
	require.NoError(t, os.RemoveAll(folder))
	for _, name := range []string{"b", "c"} {
		s.create(t, name)
		require.Equal(t, "ADD "+name, tell(<-pods.Updates()))
		require.Eventually(t, func() bool { return len(pods.Status()[0].Problems) == 1 }, time.Minute, time.Millisecond)
	}
	cancel()
	for range pods.Updates() {
	}
	require.NoError(t, <-ended) // which saves the last state, in vain
	require.EqualValues(t, 1, lines.Load())
}
