// Package cachetest has the helpers that tests of the rooms share: pods, and a watch that is pulled
// event by event.
package cachetest

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// Pod is a pod to be created, in namespace "ns".
func Pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

// OnNode binds a pod.
func OnNode(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

// Labelled gives a pod a label.
func Labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

// InNamespace puts a pod elsewhere.
func InNamespace(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

// Seen is an event in one line: "ADDED a@3".
func Seen(e listwatch.Event[*corev1.Pod]) string {
	if e.Type == watch.Bookmark {
		line := "BOOKMARK " + e.ResourceVersion
		if e.InitialEventsEnd {
			line += " end"
		}
		return line
	}
	return fmt.Sprintf("%s %s@%s", e.Type, e.Object.Name, e.Object.ResourceVersion)
}

// Follow pulls events one at a time.
type Follow struct {
	t    testing.TB
	Pull func() (listwatch.Event[*corev1.Pod], error, bool)
}

// Start follows events until the test ends.
func Start(t testing.TB, events iter.Seq2[listwatch.Event[*corev1.Pod], error]) *Follow {
	t.Helper()
	pull, stop := iter.Pull2(events)
	t.Cleanup(stop)
	return &Follow{t, pull}
}

// Require takes the next len(want) events.
func (f *Follow) Require(want ...string) {
	f.t.Helper()
	for _, line := range want {
		e, err, ok := f.Pull()
		require.NoError(f.t, err)
		require.True(f.t, ok, "the watch has ended before %s", line)
		require.Equal(f.t, line, Seen(e))
	}
}

// RequireExpired takes a 410, and nothing after it.
func (f *Follow) RequireExpired() {
	f.t.Helper()
	_, err, ok := f.Pull()
	require.True(f.t, ok)
	require.True(f.t, apierrors.IsResourceExpired(err), "%v", err)
	_, _, ok = f.Pull()
	require.False(f.t, ok, "the error is the last thing")
}

// RequireEnd takes the end.
func (f *Follow) RequireEnd() {
	f.t.Helper()
	e, err, ok := f.Pull()
	require.False(f.t, ok, "%v %v", e, err)
}
