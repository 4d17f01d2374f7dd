package sources_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// warned waits until the source has these warnings and no problem, each by a part of its text, and
// is safe to prune.
func (r *rig) warned(texts ...string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		status := r.Status()[0]
		if len(status.Problems) > 0 || len(status.Warnings) != len(texts) {
			return false
		}
		for i, text := range texts {
			if !strings.Contains(status.Warnings[i].Error(), text) {
				return false
			}
		}
		return r.SafeToPrune(status.Source) && r.Ready(time.Hour) == nil
	}, patience, time.Millisecond, "%+v", r.Status())
}

// unsafe waits until the source has a problem with this text that hides a pod.
func (r *rig) unsafe(text string) {
	r.t.Helper()
	r.problem(text)
	require.False(r.t, r.SafeToPrune(r.Status()[0].Source))
}

// TestFilesThatAreNoManifests: they hide no pod, unless a pod is read from them, as the kubelet
// reads it.
func TestFilesThatAreNoManifests(t *testing.T) {
	path := folder(t)
	in := func(name string) string { return filepath.Join(path, name) }
	put(t, in("README.md"), "# Put your: manifests here\n")
	put(t, in("a.yaml"), manifestOf("a", "v1"))
	put(t, in("comments.yaml"), "---\n# kind: Pod\n")
	put(t, in("empty.yaml"), "")
	put(t, in("kustomization.yaml"), "resources: [a.yaml]\n")
	put(t, in("web.tar.gz"), "\x1f\x8b")
	require.NoError(t, os.Truncate(in("web.tar.gz"), 11<<20))
	age(t, in("web.tar.gz"))
	log := &logLines{}
	r := start(t, sources.WithLogger(log.logger()), sources.File(path, static.WithInterval(5*time.Millisecond)))
	r.expect("ADD file a-node-1=v1")
	foreign := []string{
		"README.md is no manifest", "comments.yaml has no document", "empty.yaml has no document", "kustomization.yaml is no manifest", "web.tar.gz is no manifest",
	}
	r.warned(foreign...)
	require.Zero(t, r.Status()[0].Errors)

	put(t, in("README.md"), manifestOf("r", "v1"))
	r.expect("ADD file r-node-1=v1")
	r.warned(foreign[1:]...)
	put(t, in("README.md"), "# Put your: manifests here\n")
	require.Contains(t, r.problem("README.md"), "this may stand for default/r-node-1: the last good state is kept")
	require.NoError(t, os.Remove(in("README.md")))
	r.expect("REMOVE file r-node-1=v1")
	r.warned(foreign[1:]...)

	// any of these may be half of a manifest
	for _, name := range []string{"empty.yaml", "new.yaml", "new", "new.manifest", "readme.yaml"} {
		put(t, in(name), "kind: Pod")
		r.unsafe(name)
		require.NoError(t, os.Remove(in(name)))
	}
	r.warned("comments.yaml", "kustomization.yaml", "web.tar.gz")
	put(t, in("service.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
	r.unsafe("service.yaml")
	require.Equal(t, 1, strings.Count(log.text(), "kustomization.yaml is no manifest"), "it is told once")
}

// TestAFileThatIsNamedIsAManifest: the one file that a source reads is no bystander, whatever its
// name.
func TestAFileThatIsNamedIsAManifest(t *testing.T) {
	for _, name := range []string{"pods.txt", "pods.yaml"} {
		path := filepath.Join(folder(t), name)
		put(t, path, "")
		watching(t, path).unsafe("manifest has no document")
	}
}
