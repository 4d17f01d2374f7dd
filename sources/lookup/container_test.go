package lookup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

// TestContainers are found by whole and by cut IDs, with their status and kind.
func TestContainers(t *testing.T) {
	id := func(c string) string { return strings.Repeat(c, 64) }
	status := func(name, id string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: name, Image: name + ":v1", ContainerID: "containerd://" + id}}
	}
	web := podOf("web", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = status("main", id("a"))
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://" + id("b")}
		p.Status.InitContainerStatuses = status("setup", id("c"))
		p.Status.EphemeralContainerStatuses = status("debug", id("d"))
	})
	twin := id("e")[:40]
	twins := podOf("twins", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(status("one", twin+strings.Repeat("1", 24)), status("two", twin+strings.Repeat("2", 24))...)
	})
	source := newScripted(sources.APISource)
	r := start(t, []lookup.Option{lookup.KeepEnded(time.Minute)}, sources.Custom(source))
	source.set(t, web, twins)
	for name, row := range map[string]struct {
		id, pod, container string
		kind               lookup.ContainerKind
	}{
		"whole":                          {id("a"), "web", "main", lookup.Regular},
		"with its runtime":               {"containerd://" + id("a"), "web", "main", lookup.Regular},
		"of before its restart":          {id("b"), "web", "main", lookup.Regular},
		"cut to 31":                      {id("a")[:31], "web", "main", lookup.Regular},
		"cut, of before its restart":     {id("b")[:31], "web", "main", lookup.Regular},
		"cut, of an init container":      {id("c")[:31], "web", "setup", lookup.Init},
		"cut, of an ephemeral container": {"containerd://" + id("d")[:12], "web", "debug", lookup.Ephemeral},
		"cut to eleven":                  {id("a")[:11], "", "", ""},
		"cut, of one of two":             {twin[:31], "", "", ""},
		"cut behind the difference":      {twin + "2", "twins", "two", lookup.Regular},
		"another":                        {id("f"), "", "", ""},
		"empty":                          {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := r.Container(row.id)
			require.Equal(t, row.pod != "", ok)
			require.Equal(t, row.pod, nameOf(got.Pod))
			require.Equal(t, row.container, got.Status.Name)
			require.Equal(t, row.kind, got.Kind)
			if ok {
				require.Equal(t, row.container+":v1", got.Status.Image)
			}
		})
	}
	source.set(t, twins)
	got, ok := r.Container(id("a")[:31])
	require.True(t, ok, "it is kept")
	require.Equal(t, "main", got.Status.Name)
	require.False(t, got.Pod.Ended.IsZero())
}
