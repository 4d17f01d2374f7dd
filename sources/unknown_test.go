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

// TestUnknownFieldsAreWarnings: a misspelt field is named by file and pod, from a file and a URL,
// in both modes. It changes nothing else.
func TestUnknownFieldsAreWarnings(t *testing.T) {
	const want = "pod default/a-node-1: not known, and dropped: spec.hostNetwrok"
	data := manifestOf("a", "v1") + "  hostNetwrok: true\n"
	for name, mode := range map[string][]sources.Option{"default": nil, "like the kubelet": {sources.LikeKubelet()}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder(t), "a.yaml")
			put(t, path, data)
			r := start(t, append(mode, sources.File(filepath.Dir(path), static.WithInterval(5*time.Millisecond)))...)
			r.expect("ADD file a-node-1=v1")
			r.warned(path + ", document 1, line 9: " + want)
			put(t, path, manifestOf("a", "v1"))
			r.warned()
			put(t, path, data)
			r.warned(want)
			require.NoError(t, os.Remove(path))
			r.expect("REMOVE file a-node-1=v1")
			r.warned()

			server := serve(t, body(data))
			r = start(t, append(mode, pollingSource(t, server.URL, static.WithInterval(5*time.Millisecond)))...)
			r.expect("ADD http a-node-1=v1")
			r.warned(want)
			server.askedAgain(t)
			r.warned(want)
			server.now(body(manifestOf("a", "v1")))
			r.warned()
		})
	}
}
