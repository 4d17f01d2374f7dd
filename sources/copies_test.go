package sources_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// A copy beside its manifest changes nothing, edits of the original count, and a copy that takes
// over does not restart the pod.
func TestCopiesOfAManifest(t *testing.T) {
	for _, name := range []string{
		"web-old.yaml", "Copy of web.yaml", "web.yaml.1", "a.yaml", "zebra.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := folder(t)
			web, copied := filepath.Join(path, "web.yaml"), filepath.Join(path, name)
			put(t, web, manifestOf("web", "v1"))
			r := watching(t, path)
			r.expect("ADD file web-node-1=v1")
			put(t, copied, manifestOf("web", "v1"))
			require.Contains(t, r.problem("stands by"), copied+": default/web-node-1 is declared by "+web)
			put(t, web, manifestOf("web", "v2"))
			r.expect("REMOVE file web-node-1=v1", "ADD file web-node-1=v2")
			put(t, copied, manifestOf("web", "v2"))
			require.NoError(t, os.Remove(web))
			r.healthy()
			put(t, copied, manifestOf("web", "v3")) // it has the name now
			r.expect("REMOVE file web-node-1=v2", "ADD file web-node-1=v3")
		})
	}
}

// Leftovers are no manifests, beside their original or without it.
func TestLeftoversNeverDeclare(t *testing.T) {
	for _, name := range []string{"web.yaml.orig", "#web.yaml#", ".web.yaml.swp", "web.yaml~", "web.yaml.bak"} {
		path := folder(t)
		put(t, filepath.Join(path, name), manifestOf("web", "v1"))
		r := watching(t, path)
		r.expect("ADD file")
		require.Equal(t, 1, r.Status()[0].Skipped, name)
	}
}

// A program that starts with both has no memory of who came first: the shortest name counts.
func TestStartWithACopyPrefersTheOriginal(t *testing.T) {
	for _, name := range []string{"web-old.yaml", "Copy of web.yaml", "web (copy).yaml", "a-web.yaml", "web.bak.yaml"} {
		path := folder(t)
		put(t, filepath.Join(path, "web.yaml"), manifestOf("web", "the original"))
		put(t, filepath.Join(path, name), manifestOf("web", "a copy"))
		watching(t, path).expect("ADD file web-node-1=the original")
	}
}

// A manifest that is moved aside keeps its pod running. A new one stands by, with a problem that
// says so, until the other file is gone.
func TestOriginalThatComesBack(t *testing.T) {
	path := folder(t)
	web, old := filepath.Join(path, "web.yaml"), filepath.Join(path, "web-old.yaml")
	put(t, web, manifestOf("web", "v1"))
	r := watching(t, path)
	r.expect("ADD file web-node-1=v1")
	require.NoError(t, os.Rename(web, old))
	put(t, filepath.Join(path, "z.yaml"), manifestOf("z", "v1"))
	r.expect("ADD file z-node-1=v1") // and nothing of web, though the rename has been seen
	put(t, web, manifestOf("web", "v2"))
	require.Equal(t, web+": default/web-node-1 is declared by "+old+" already and stands by", r.problem("stands by"))
	require.NoError(t, os.Remove(old))
	r.expect("REMOVE file web-node-1=v1", "ADD file web-node-1=v2")
}

// A copy takes a moment until it is read. Nothing that it may declare stops meanwhile.
func TestManifestThatIsCopiedAndRemoved(t *testing.T) {
	path := folder(t)
	from, to := filepath.Join(path, "a.yaml"), filepath.Join(path, "b.yaml")
	put(t, from, manifestOf("p", "v1"))
	r := watching(t, path)
	r.expect("ADD file p-node-1=v1")
	for range 3 {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, data, 0o600)) // it is young
		require.NoError(t, os.Remove(from))
		from, to = to, from
	}
	put(t, filepath.Join(path, "z.yaml"), manifestOf("z", "v1"))
	r.expect("ADD file z-node-1=v1")
	require.NoError(t, os.Remove(from))
	r.expect("REMOVE file p-node-1=v1")
}

// The UID outlives renames and restarts, and tells folders apart.
func TestUIDOfAFilesPod(t *testing.T) {
	uidIn := func(path string) string {
		r := watching(t, path)
		defer r.stop()
		return string(r.update().Pods[0].UID)
	}
	path, other := folder(t), folder(t)
	put(t, filepath.Join(path, "a.yaml"), manifestOf("p", "v1"))
	put(t, filepath.Join(other, "a.yaml"), manifestOf("p", "v1"))
	first := uidIn(path)
	require.NotEqual(t, first, uidIn(other))
	require.NoError(t, os.Rename(filepath.Join(path, "a.yaml"), filepath.Join(path, "b.yaml")))
	require.Equal(t, first, uidIn(path))
	t.Chdir(filepath.Dir(path))
	require.Equal(t, first, uidIn(filepath.Base(path)), "a relative path is the same folder")
	r := start(t, sources.LikeKubelet(), sources.File(path, static.WithInterval(time.Hour)))
	require.NotEqual(t, first, string(r.update().Pods[0].UID), "the kubelet has the file in the hash")
}
