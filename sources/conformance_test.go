package sources_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/sourcestest"
	"github.com/tributary-go/tributary/sources/static"
)

func onTheNode(name string) string { return name + "-" + sourcestest.Node }

func TestFileConforms(t *testing.T) {
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		path := folder(t)
		return sourcestest.Rig{
			Source:  sources.SourceOf(sources.File(path, static.WithInterval(time.Hour))),
			PodName: onTheNode,
			Declare: func(names ...string) {
				wanted := map[string]bool{}
				for _, name := range names {
					wanted[name+".yaml"] = true
					if _, err := os.Stat(filepath.Join(path, name+".yaml")); err != nil {
						put(t, filepath.Join(path, name+".yaml"), manifestOf(name, "v1"))
					}
				}
				files, err := os.ReadDir(path)
				require.NoError(t, err)
				for _, file := range files {
					if !wanted[file.Name()] {
						require.NoError(t, os.Remove(filepath.Join(path, file.Name())))
					}
				}
			},
		}
	})
}

func TestSingleFileConforms(t *testing.T) {
	t.Parallel() // it waits
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		path := filepath.Join(folder(t), "pods.json")
		return sourcestest.Rig{
			Source:  sources.SourceOf(sources.File(path, static.WithInterval(time.Hour))),
			PodName: onTheNode,
			Declare: func(names ...string) { put(t, path, listOf(names)) },
			Break:   func() { put(t, path, "{") },
		}
	})
}

func listOf(names []string) string {
	var items []string
	for _, name := range names {
		items = append(items, item(name, "v1"))
	}
	return podList(items...)
}

func TestHTTPConforms(t *testing.T) {
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		server := serve(t, body(podList()))
		return sourcestest.Rig{
			Source:  sources.SourceOf(pollingSource(t, server.URL)),
			PodName: onTheNode,
			Declare: func(names ...string) { server.now(body(listOf(names))) },
			Break:   func() { server.now(status(http.StatusInternalServerError)) },
		}
	})
}

func TestKubeletsOwnListConforms(t *testing.T) {
	listed := func(names ...string) http.HandlerFunc {
		var items []string
		for _, name := range names {
			items = append(items, strings.Replace(item(name, "v1"), `{"name":`, `{"namespace":"default","name":`, 1))
		}
		return body(podList(items...))
	}
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		server := serve(t, listed())
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		return sourcestest.Rig{
			// An empty list after others may be of a kubelet that has just started.
			Source: sources.SourceOf(sources.Kubelet(server.URL, static.WithGrace(0),
				static.WithInterval(5*time.Millisecond), static.WithTransport(transport))),
			Declare: func(names ...string) { server.now(listed(names...)) },
			Break:   func() { server.now(status(http.StatusUnauthorized)) },
		}
	})
}

func TestAPIServerConforms(t *testing.T) {
	t.Parallel() // it waits
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		c := newCluster(t)
		return sourcestest.Rig{
			Source: sources.SourceOf(sources.APIServer(c.client, reflector.WithBackoff(time.Millisecond, time.Millisecond))),
			Declare: func(names ...string) {
				c.refuse.Store(0)
				wanted := map[string]bool{}
				for _, name := range names {
					wanted[name] = true
					if _, err := c.pods.Get("default", name); err != nil {
						c.create(name, onNode(sourcestest.Node))
					}
				}
				for _, pod := range c.pods.Snapshot().Sorted() {
					if !wanted[pod.Name] {
						c.remove(pod.Name)
					}
				}
			},
			Break: func() {
				c.refuse.Store(http.StatusServiceUnavailable)
				c.cut()
			},
		}
	})
}

func TestScriptedConforms(t *testing.T) {
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		source := newScripted("s")
		source.states = make(chan sources.Pods, 16)
		source.tell(sources.Report{Mode: "script", LastContact: time.Now()})
		return sourcestest.Rig{Source: source, Declare: func(names ...string) {
			var pods []*corev1.Pod
			for _, name := range names {
				pods = append(pods, podOf(name, "v1"))
			}
			source.set(t, pods...)
		}}
	})
}
