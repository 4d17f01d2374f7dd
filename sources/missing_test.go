package sources_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// A misspelt path looks like a node without static pods: an agent must not stop those that run.
func TestPathThatWasNeverThere(t *testing.T) {
	for name, manifest := range map[string]string{"a folder": "a.yaml", "a file": "."} {
		for mode, options := range map[string][]sources.Option{"default": nil, "LikeKubelet": {sources.LikeKubelet()}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				var log logLines
				path := filepath.Join(folder(t), "typo")
				r := start(t, append(options, sources.WithLogger(log.logger()), sources.File(path, static.WithInterval(5*time.Millisecond)))...)
				r.expect("ADD file")
				<-r.Synced() // a node without static pods starts
				require.Contains(t, r.problem("is not there"), path)
				looks := func() int { return strings.Count(log.text(), "Looked at manifests") }
				require.Eventually(t, func() bool { return mode != "default" || looks() > 5 }, patience, time.Millisecond)
				require.False(t, r.SafeToPrune(sources.FileSource))
				require.Equal(t, 1, strings.Count(log.text(), "is not there"), "it is said once")
				if manifest != "." {
					require.NoError(t, os.Mkdir(path, 0o700))
				}
				put(t, filepath.Join(path, manifest), manifestOf("p", "v1"))
				r.expect("ADD file p-node-1=v1")
				r.healthy()
				require.Eventually(t, func() bool { return r.SafeToPrune(sources.FileSource) }, patience, time.Millisecond)
			})
		}
	}
}

func TestEmptyPathsAndAddressesAreRefused(t *testing.T) {
	path := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, row := range []struct {
		input sources.Input
		want  string
	}{
		{sources.File(""), "the manifest path is empty: give a file or a folder"},
		{sources.HTTP(""), "the manifest URL is empty"},
		{sources.Kubelet(""), "the manifest URL is empty"},
		{sources.Input{}, "an empty Input adds no source"},
		{sources.File("").Named("name"), "the manifest path is empty"},
		{sources.File("").Optional(0), "the manifest path is empty"},
	} {
		// Another source that is well does not hide the mistake.
		for _, all := range [][]sources.Option{{sources.File(path), row.input}, {sources.LikeKubelet(), sources.File(path), row.input}} {
			require.ErrorContains(t, sources.New("node-1", all...).Run(ctx), row.want)
		}
		require.ErrorContains(t, sources.New("node-1", sources.File(path)).Add(row.input), row.want)
	}
}
