package sources_test

import (
	"testing"

	"github.com/tributary-go/tributary/sources"
)

// TestWithRelease: a manifest that 1.37 refuses and 1.36 takes, from a file and a URL, in both
// modes. Without a release it is taken.
func TestWithRelease(t *testing.T) {
	data := manifestOf("p", "v1") + "  volumes: [{name: v, image: {pullPolicy: Always}}]\n"
	const reason = "spec.volumes[0].image.reference: Required value"
	for name, mode := range map[string][]sources.Option{"default": nil, "like the kubelet": {sources.LikeKubelet()}} {
		t.Run(name, func(t *testing.T) {
			path, server := folder(t), serve(t, body(data))
			put(t, path+"/p.yaml", data)
			for source, input := range map[string]func() sources.Input{
				"file": func() sources.Input { return sources.File(path) },
				"http": func() sources.Input { return sources.HTTP(server.URL) },
			} {
				start(t, append(mode, input())...).expect("ADD " + source + " p-node-1=v1")
				start(t, append(mode, input(), sources.WithRelease("1.36"))...).expect("ADD " + source + " p-node-1=v1")
				start(t, append(mode, input(), sources.WithRelease("v1.37.2"))...).problem(reason)
			}
		})
	}
}
