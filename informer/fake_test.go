package informer_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

type (
	podEvent   = informer.Event[*corev1.Pod]
	podHandler = informer.Handler[*corev1.Pod]
	content    = map[string]string // by key, "uid@version"
)

// server is a collection of pods with its whole history. A test can erase the history, and cut
// watches.
type server struct {
	// version turns a revision into a resource version, for versions that cannot be compared.
	version func(revision int) string

	mu       sync.Mutex
	pods     map[string]*corev1.Pod
	history  []watched // change n is history[n-1]
	floor    int       // watches from an earlier version expire
	uids     int
	changed  chan struct{} // closed at the next change
	cut      chan struct{} // closed to end the watches
	mute     bool          // watches send nothing until they are cut
	lost     int           // watches skip changes up to this one
	requests int           // lists, probes apart
}

// watched is a change and the content after it.
type watched struct {
	event listwatch.Event[*corev1.Pod]
	after content
}

func newServer(names ...string) *server {
	s := &server{version: strconv.Itoa, pods: map[string]*corev1.Pod{}, changed: make(chan struct{}), cut: make(chan struct{})}
	for _, name := range names {
		s.put(name)
	}
	return s
}

func (s *server) put(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := watch.Modified
	pod, held := s.pods[name]
	if held {
		pod = pod.DeepCopy()
	} else {
		kind = watch.Added
		s.uids++
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprint("uid-", s.uids))}}
	}
	s.pods[name] = pod
	s.noteLocked(kind, pod)
	return pod
}

func (s *server) remove(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod := s.pods[name].DeepCopy()
	delete(s.pods, name)
	s.noteLocked(watch.Deleted, pod)
	return pod
}

func (s *server) noteLocked(kind watch.EventType, pod *corev1.Pod) {
	pod.ResourceVersion = s.version(len(s.history) + 1)
	event := listwatch.Event[*corev1.Pod]{Type: kind, Object: pod, ResourceVersion: pod.ResourceVersion}
	s.history = append(s.history, watched{event, contentOf(maps.Values(s.pods))})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	event := listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: s.version(len(s.history) + 1)}
	s.history = append(s.history, watched{event, contentOf(maps.Values(s.pods))})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = true
}

// lose makes watches skip all changes so far.
func (s *server) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = len(s.history)
}

// disconnect ends the watches; with forget, they cannot be resumed.
func (s *server) disconnect(forget bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if forget {
		s.floor = len(s.history)
	}
	s.mute = false
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *server) at(version string) content {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.history {
		if w.event.ResourceVersion == version {
			return w.after
		}
	}
	return nil
}

// changes returns all writes so far, for [histories.Check].
func (s *server) changes() (all []histories.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.history {
		if w.event.Type != watch.Bookmark {
			all = append(all, histories.Change{Type: w.event.Type, Key: store.KeyOf(w.event.Object), ResourceVersion: w.event.ResourceVersion})
		}
	}
	return all
}

func (s *server) now() content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return contentOf(maps.Values(s.pods))
}

func contentOf(pods iter.Seq[*corev1.Pod]) content {
	c := content{}
	for p := range pods {
		c[store.KeyOf(p)] = string(p.UID) + "@" + p.ResourceVersion
	}
	return c
}

// source is the server for a function that infers the type of the objects.
func (s *server) source() listwatch.ListerWatcher[*corev1.Pod] { return s }

func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) List(_ context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	var meta metav1.ListMeta
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return meta },
		Items: func(yield func(*corev1.Pod, error) bool) {
			s.mu.Lock()
			if o.Limit != 1 && o.Limit != 300 { // not a probe
				s.requests++
			}
			pods := slices.Collect(maps.Values(s.pods))
			meta.ResourceVersion = s.version(len(s.history))
			s.mu.Unlock()
			for _, p := range pods {
				if !yield(p, nil) {
					return
				}
			}
		},
	}
}

func (s *server) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		s.mu.Lock()
		cut := s.cut
		from := 0
		for from < len(s.history) && s.version(from) != o.ResourceVersion {
			from++
		}
		expired := from < s.floor
		s.mu.Unlock()
		if expired {
			yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewResourceExpired("too old resource version"))
			return
		}
		for {
			s.mu.Lock()
			changed, lost, news := s.changed, s.lost, s.history[from:]
			if s.mute || cut != s.cut {
				news = nil
			}
			s.mu.Unlock()
			for _, w := range news {
				from++
				if from > lost && !yield(w.event, nil) {
					return
				}
			}
			if len(news) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-cut:
				yield(listwatch.Event[*corev1.Pod]{}, io.ErrUnexpectedEOF)
				return
			case <-ctx.Done():
				yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
				return
			}
		}
	}
}

// start runs an informer until stop, which returns Run's error. The end of the test stops it too.
func start(t testing.TB, i interface{ Run(context.Context) error }) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stop
}

// running returns an informer that runs and is synced.
func running(t testing.TB, s *server, options ...informer.Option) *informer.Informer[*corev1.Pod] {
	t.Helper()
	i := informer.New[*corev1.Pod](s, options...)
	start(t, i)
	require.NoError(t, i.WaitSynced(t.Context()))
	return i
}
