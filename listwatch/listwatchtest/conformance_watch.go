package listwatchtest

import (
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The rows about watches. Silence cannot be tested; instead, the next event must be a later one.

func watchFromEachVersion(p *probe) {
	start := p.pod("start")
	a := p.pod("a")
	b := p.pod("b")
	changed := p.label(a, "k", "v")
	p.delete("b")
	c := p.pod("c")
	history := []struct {
		kind watch.EventType
		pod  *corev1.Pod
	}{{watch.Added, a}, {watch.Added, b}, {watch.Modified, changed}, {watch.Deleted, b}, {watch.Added, c}}

	from := start.ResourceVersion
	for i := range history {
		s := p.watch(metav1.ListOptions{ResourceVersion: from})
		for j, e := range history[i:] {
			got := s.require(e.kind, e.pod)
			if j == 0 {
				require.True(p, older(p, from, got.ResourceVersion))
				from = got.ResourceVersion
			}
		}
	}
	_, meta := p.listed(metav1.ListOptions{})
	s := p.watch(metav1.ListOptions{ResourceVersion: meta.ResourceVersion})
	s.require(watch.Added, p.pod("d"))
}

func watchStateFirst(p *probe) {
	a := p.pod("a")
	b := p.pod("b")
	for _, version := range []string{"", "0"} {
		_, latest := p.listed(metav1.ListOptions{})
		// After this, the server's cache has latest.
		p.listed(metav1.ListOptions{ResourceVersion: latest.ResourceVersion})
		s := p.watch(metav1.ListOptions{ResourceVersion: version})
		got := []*corev1.Pod{s.next().Object, s.next().Object}
		require.ElementsMatch(p, []string{a.ResourceVersion, b.ResourceVersion},
			[]string{got[0].ResourceVersion, got[1].ResourceVersion})
		s.require(watch.Added, p.pod("c"+version))
		p.delete("c" + version)
	}
}

func initialEvents() metav1.ListOptions {
	yes := true
	return metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

// initial pulls the events of a watch list up to its bookmark.
func (s *stream) initial() (names []string, version string) {
	s.p.Helper()
	names = []string{}
	for {
		e := s.next()
		if e.Type == watch.Bookmark {
			require.True(s.p, e.InitialEventsEnd)
			return names, e.ResourceVersion
		}
		require.Equal(s.p, watch.Added, e.Type)
		names = append(names, e.Object.Name)
	}
}

func watchList(p *probe) {
	empty, _ := p.watch(initialEvents()).initial()
	require.Empty(p, empty)
	p.pod("a")
	b := p.pod("b")
	s := p.watch(initialEvents())
	state, version := s.initial()
	require.ElementsMatch(p, []string{"a", "b"}, state)
	require.False(p, older(p, version, b.ResourceVersion), "a watch list without a version holds every write")
	c := p.pod("c")
	s.require(watch.Added, c)
	p.watch(metav1.ListOptions{ResourceVersion: version}).require(watch.Added, c)

	options := initialEvents()
	options.ResourceVersion = c.ResourceVersion
	state, _ = p.watch(options).initial()
	require.ElementsMatch(p, []string{"a", "b", "c"}, state)
}

func watchListSelectors(p *probe) {
	p.pod("a", "app", "web")
	b := p.pod("b", "app", "db")
	options := initialEvents()
	options.LabelSelector = "app=web"
	s := p.watch(options)
	state, _ := s.initial()
	require.Equal(p, []string{"a"}, state)
	s.require(watch.Added, p.label(b, "app", "web"))

	options = initialEvents()
	options.FieldSelector = "metadata.name=b"
	state, _ = p.watch(options).initial()
	require.Equal(p, []string{"b"}, state)
}

func watchListMalformed(p *probe) {
	options := initialEvents()
	options.ResourceVersionMatch = ""
	err := p.watch(options).failure()
	require.True(p, apierrors.IsInvalid(err), "%v", err)
	options = metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	err = p.watch(options).failure()
	require.True(p, apierrors.IsInvalid(err), "%v", err)
}

func watchLabels(p *probe) {
	a := p.pod("a", "app", "db")
	s := p.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, LabelSelector: "app=web"})
	started := p.label(a, "app", "web")
	kept := p.label(started, "other", "x")
	stopped := p.label(kept, "app", "db")
	p.label(stopped, "other", "y") // not selected by this watch
	again := p.label(p.written(p.current("a")), "app", "web")
	p.delete("a")

	s.require(watch.Added, started)
	s.require(watch.Modified, kept)
	last := s.require(watch.Deleted, kept)
	require.Equal(p, "web", last.Labels["app"], "the last state that matched")
	require.Equal(p, stopped.ResourceVersion, last.ResourceVersion, "at the version of the change")
	s.require(watch.Added, again)
	last = s.require(watch.Deleted, again)
	require.Equal(p, "web", last.Labels["app"])
}

func watchFields(p *probe) {
	a := p.pod("a")
	other := p.pod("other")
	s := p.watch(metav1.ListOptions{ResourceVersion: other.ResourceVersion, FieldSelector: "status.phase=Running"})
	phase := func(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Status.Phase = phase
		return p.written(p.UpdateStatus(p.Context(), pod))
	}
	running := phase(a, corev1.PodRunning)
	p.label(other, "k", "v") // not selected by this watch
	done := phase(running, corev1.PodSucceeded)
	s.require(watch.Added, running)
	last := s.require(watch.Deleted, running)
	require.Equal(p, corev1.PodRunning, last.Status.Phase)
	require.Equal(p, done.ResourceVersion, last.ResourceVersion)
}

func watchDeletion(p *probe) {
	a := p.label(p.pod("a"), "k", "last")
	s := p.watchFrom(a)
	p.delete("a")
	b := p.pod("b")
	last := s.require(watch.Deleted, a)
	require.Equal(p, "last", last.Labels["k"])
	require.Equal(p, a.Spec.Containers[0].Image, last.Spec.Containers[0].Image)
	require.True(p, older(p, a.ResourceVersion, last.ResourceVersion), "at the version of the deletion")
	require.True(p, older(p, last.ResourceVersion, b.ResourceVersion))
	s.require(watch.Added, b)
}

func watchFinalizers(p *probe) {
	held := p.pod("a").DeepCopy()
	held.Finalizers = []string{"example.com/held"}
	held = p.written(p.Update(p.Context(), held))
	s := p.watchFrom(held)
	p.delete("a")
	marked := s.next()
	require.Equal(p, watch.Modified, marked.Type)
	require.NotNil(p, marked.Object.DeletionTimestamp)

	free := p.written(p.current("a")).DeepCopy()
	free.Finalizers = nil
	p.written(p.Update(p.Context(), free))
	last := s.require(watch.Deleted, held)
	require.NotNil(p, last.DeletionTimestamp)
}

func watchRecreated(p *probe) {
	a := p.pod("a")
	s := p.watchFrom(a)
	p.delete("a")
	again := p.pod("a")
	require.NotEqual(p, a.UID, again.UID)
	s.require(watch.Deleted, a)
	s.require(watch.Added, again)
}

func watchBookmark(p *probe) {
	a := p.pod("a", "app", "web")
	options := metav1.ListOptions{ResourceVersion: a.ResourceVersion, AllowWatchBookmarks: true, LabelSelector: "app=web"}
	if p.Bookmark == nil {
		seconds := int64(10)
		options.TimeoutSeconds = &seconds
	}
	s := p.watch(options)
	b := p.pod("b", "app", "web")
	s.require(watch.Added, b) // the watch is open
	p.pod("c", "app", "db")
	if p.Bookmark != nil {
		p.Bookmark()
	}
	mark := s.next()
	require.Equal(p, watch.Bookmark, mark.Type)
	require.Nil(p, mark.Object)
	require.False(p, mark.InitialEventsEnd)
	require.False(p, older(p, mark.ResourceVersion, b.ResourceVersion))
	d := p.pod("d", "app", "web")
	if p.Bookmark != nil {
		s.require(watch.Added, d)
	}
	p.watch(metav1.ListOptions{ResourceVersion: mark.ResourceVersion, LabelSelector: "app=web"}).require(watch.Added, d)

	if p.Bookmark == nil {
		return
	}
	s = p.watchFrom(b)
	require.Equal(p, "c", s.next().Object.Name)
	s.require(watch.Added, d)
	p.Bookmark()
	s.require(watch.Added, p.pod("e")) // no bookmark without allowWatchBookmarks
}

func watchTimeout(p *probe) {
	a := p.pod("a")
	seconds := int64(1)
	began := time.Now()
	s := p.watch(metav1.ListOptions{ResourceVersion: a.ResourceVersion, TimeoutSeconds: &seconds})
	_, err, ok := s.pull()
	require.False(p, ok, "the end is no event and no error: %v", err)
	require.GreaterOrEqual(p, time.Since(began), 900*time.Millisecond)
}

func watchNoChange(p *probe) {
	a := p.pod("a")
	s := p.watchFrom(a)
	same := p.written(p.Update(p.Context(), a.DeepCopy()))
	require.Equal(p, a.ResourceVersion, same.ResourceVersion)
	s.require(watch.Modified, p.label(a, "k", "v"))
}

func expiredWatch(p *probe) {
	a := p.pod("a")
	p.pod("b")
	p.expire()
	err := p.watchFrom(a).failure()
	require.True(p, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)

	// A watch that begins with the state has no past to miss.
	_, meta := p.listed(metav1.ListOptions{})
	c := p.pod("c")
	p.watch(metav1.ListOptions{ResourceVersion: meta.ResourceVersion}).require(watch.Added, c)
	state, _ := p.watch(initialEvents()).initial()
	require.ElementsMatch(p, []string{"a", "b", "c"}, state)
}

func (p *probe) current(name string) (*corev1.Pod, error) {
	pods, _, err := p.list(metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err == nil && len(pods) != 1 {
		err = apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	if err != nil {
		return nil, err
	}
	return pods[0], nil
}
