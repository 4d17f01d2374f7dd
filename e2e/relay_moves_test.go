package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/store"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// TestRelayClientsMove: clients go from the API server to one of two relays, to the other, and
// back, with the version of the last event that they were told, under writes. They are told each
// change once. Pages go on elsewhere too, and are the collection as it was at the version of the
// first page.
func TestRelayClientsMove(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	w.defineWidgets()
	w.fill(60)
	w.fillWidgets(60)
	seed := relaySeed(t)
	places := []dynamic.Interface{w.dynamics}
	for range 2 {
		relay := w.relayOfServer(nil)
		client, err := dynamic.NewForConfig(relay.config(cluster.Admin))
		require.NoError(t, err)
		places = append(places, client)
	}
	parts := []part{
		{podResource, ""}, {podResource, "spec.nodeName=" + nodeName(1)},
		{widgetResource, ""}, {widgetResource, "spec.nodeName=" + nodeName(2)},
	}
	length, movers := 10*time.Second, 3
	if full {
		length = time.Minute
	}
	type told struct {
		*mover
		truth *mover
	}
	var all []told
	for i, s := range parts {
		list, err := w.dynamics.Resource(s.resource).List(t.Context(), metav1.ListOptions{FieldSelector: s.fields})
		require.NoError(t, err)
		stays := newMover(s, list.GetResourceVersion(), places[:1], 0)
		all = append(all, told{stays, stays})
		for n := range movers {
			all = append(all, told{newMover(s, list.GetResourceVersion(), places, seed+uint64(i*movers+n)), stays})
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var moving sync.WaitGroup
	for _, one := range all {
		moving.Go(func() { one.run(ctx) })
	}
	writing := w.startWriter(5*time.Millisecond, true)
	pages := pager{t: t, places: places, random: rand.New(rand.NewPCG(seed, 1)), lists: map[string]map[string]string{}}
	for began := time.Now(); time.Since(began) < length; {
		pages.list(podResource)
		pages.list(widgetResource)
	}
	writing.end()
	for _, one := range all {
		require.NoError(t, one.broken(), "%s, seed %d", one.mover, seed)
	}
	for _, one := range all { // until all have been told of the last change
		last, err := w.dynamics.Resource(one.resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		newest := uint64(0)
		for i := range last.Items {
			newest = max(newest, versionNumber(last.Items[i].GetResourceVersion()))
		}
		if one.fields == "" {
			require.Eventually(t, func() bool { return one.reached() >= newest }, 30*time.Second, 10*time.Millisecond, "%s", one.mover)
		}
	}
	pass(time.Second) // for the last events of parts
	stop()
	moving.Wait()
	moves, events := 0, 0
	for _, one := range all {
		require.NoError(t, one.failed, "%s, seed %d", one.mover, seed)
		require.NotEmpty(t, one.truth.told)
		require.Equal(t, one.truth.told, one.told, "%s, seed %d", one.mover, seed)
		moves, events = moves+one.moves, events+len(one.told)
	}
	require.Greater(t, pages.whole, 5)
	pages.judge(all[0].truth, all[2*(movers+1)].truth)
	t.Logf("%s; %d moves, %d events, %d lists in pages, %d begun again for a 410", writing, moves, events, pages.whole, pages.expired)
}

// part is a collection, or what a field selector selects of it.
type part struct {
	resource schema.GroupVersionResource
	fields   string
}

// change is an event as it is told.
type change struct {
	kind         watch.EventType
	key, version string
}

// mover watches at one place after the other.
type mover struct {
	part
	places []dynamic.Interface
	random *rand.Rand

	told  []change
	moves int

	mu      sync.Mutex // guards the next fields
	version string
	failed  error
}

func (m *mover) broken() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

func (m *mover) breaks(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
}

func newMover(s part, version string, places []dynamic.Interface, seed uint64) *mover {
	return &mover{part: s, version: version, places: places, random: rand.New(rand.NewPCG(seed, 0))}
}

func (m *mover) String() string {
	return fmt.Sprintf("a client of %s?%s at %d places, %d moves, at version %s", m.resource.Resource, m.fields, len(m.places), m.moves, m.version)
}

func (m *mover) reached() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return versionNumber(m.version)
}

func versionNumber(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// run watches until ctx ends, now here and now there.
func (m *mover) run(ctx context.Context) {
	for ctx.Err() == nil && m.broken() == nil {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond+time.Duration(m.random.IntN(300))*time.Millisecond)
		m.watch(short, m.places[m.random.IntN(len(m.places))])
		cancel()
		m.moves++
	}
}

func (m *mover) watch(ctx context.Context, place dynamic.Interface) {
	stream, err := place.Resource(m.resource).Watch(ctx, metav1.ListOptions{
		ResourceVersion: m.version, FieldSelector: m.fields, AllowWatchBookmarks: true,
	})
	if err != nil {
		if ctx.Err() == nil {
			m.breaks(err)
		}
		return
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-stream.ResultChan():
			if !open {
				return
			}
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				if ctx.Err() == nil {
					m.breaks(apierrors.FromObject(e.Object))
				}
				return
			}
			m.take(e.Type, obj)
		}
	}
}

func (m *mover) take(kind watch.EventType, obj *unstructured.Unstructured) {
	if kind != watch.Bookmark {
		m.told = append(m.told, change{kind, store.KeyOf(obj), obj.GetResourceVersion()})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version = obj.GetResourceVersion()
}

// pager lists in pages, each at another place.
type pager struct {
	t              *testing.T
	places         []dynamic.Interface
	random         *rand.Rand
	lists          map[string]map[string]string // by resource and version: the versions by key
	whole, expired int
}

func (p *pager) list(resource schema.GroupVersionResource) {
	p.t.Helper()
	options := metav1.ListOptions{Limit: 7}
	state, version := map[string]string{}, ""
	for {
		page, err := p.places[p.random.IntN(len(p.places))].Resource(resource).List(p.t.Context(), options)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			p.expired++
			return
		}
		require.NoError(p.t, err)
		if version == "" {
			version = page.GetResourceVersion()
		}
		require.Equal(p.t, version, page.GetResourceVersion(), "a page of another version")
		for i := range page.Items {
			key := store.KeyOf(&page.Items[i])
			require.NotContains(p.t, state, key, "twice in the pages of one list")
			state[key] = page.Items[i].GetResourceVersion()
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	p.whole++
	p.lists[resource.Resource+"@"+version] = state
}

// judge compares the lists with the states that the events make of each other.
func (p *pager) judge(truths ...*mover) {
	p.t.Helper()
	for _, truth := range truths {
		listed := []uint64{}
		for name := range p.lists {
			if version := versionAt(name, truth.resource.Resource); version > 0 {
				listed = append(listed, version)
			}
		}
		slices.Sort(listed)
		if len(listed) == 0 {
			continue
		}
		state := p.lists[truth.resource.Resource+"@"+fmt.Sprint(listed[0])]
		at := listed[0]
		for _, version := range listed[1:] {
			for _, c := range truth.told {
				if n := versionNumber(c.version); n > at && n <= version {
					if delete(state, c.key); c.kind != watch.Deleted {
						state[c.key] = c.version
					}
				}
			}
			at = version
			require.Equal(p.t, state, p.lists[truth.resource.Resource+"@"+fmt.Sprint(version)], "%s at %d", truth.resource.Resource, version)
		}
	}
}

func versionAt(name, resource string) uint64 {
	if len(name) <= len(resource)+1 || name[:len(resource)] != resource {
		return 0
	}
	return versionNumber(name[len(resource)+1:])
}

// codeOf is the code of an answer, read or not.
func codeOf(t testing.TB, config *rest.Config, path string, headers ...string) (code int, header http.Header) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	return answer.StatusCode, answer.Header
}
