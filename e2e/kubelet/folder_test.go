package kubelet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// folder is a story of manifests in a folder.
type folder struct {
	Path   string `json:"path"`
	Before []file `json:"before"`
	Then   []file `json:"then"`
}

type file struct {
	Path string `json:"path"`
	Data string `json:"data"`
}

func podFile(path, name, image, uid string) file {
	return file{path, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %q}\nspec: {containers: [{name: c, image: %s}]}\n", name, uid, image)}
}

// TestFoldersLikeTheKubelet: stories of files, and the updates that come of them before any period
// is over.
func TestFoldersLikeTheKubelet(t *testing.T) {
	k := startKubelet(t)
	for name, row := range map[string]struct {
		story folder
		want  []string
	}{
		"two pods of one UID": {folder{"", []file{podFile("z.yaml", "z", "image-z", "u")}, []file{podFile("a.yaml", "a", "image-a", "u")}},
			[]string{"ADD z-node-1=image-z", "UPDATE z-node-1=image-a"}},
		"the first of them is written again": {folder{"", []file{podFile("z.yaml", "z", "image-z", "u")}, []file{
			podFile("a.yaml", "a", "image-a", "u"), podFile("z.yaml", "z", "image-a", "u"), podFile("b.yaml", "b", "image-b", "")}},
			[]string{"ADD z-node-1=image-z", "UPDATE z-node-1=image-a", "ADD b-node-1=image-b"}},
		"a pattern in the folder's path": {folder{"m[1]", []file{podFile("m[1]/a.yaml", "a", "image", ""), podFile("m1/b.yaml", "b", "image", "")},
			[]file{podFile("m[1]/c.yaml", "c", "image", "")}},
			[]string{"ADD b-node-1=image", "ADD c-node-1=image"}},
		"a question mark in the folder's path": {folder{"m?", []file{podFile("m?/a.yaml", "a", "image", ""), podFile("m1/b.yaml", "b", "image", "")}, nil},
			[]string{"ADD a-node-1=image b-node-1=image"}},
		"a star above the folder": {folder{"*/m", []file{podFile("*/m/a.yaml", "a", "image", ""), podFile("x/m/b.yaml", "b", "image", "")}, nil},
			[]string{"ADD a-node-1=image b-node-1=image"}},
	} {
		t.Run(name, func(t *testing.T) {
			var theirs struct {
				Updates []sources.PodUpdate `json:"updates"`
			}
			k.answer(t, map[string]any{"folder": row.story}, &theirs)
			require.Equal(t, row.want, described(theirs.Updates), "the kubelet")
			require.Equal(t, row.want, described(row.story.play(t)))
		})
	}
}

func described(updates []sources.PodUpdate) (lines []string) {
	for _, u := range updates {
		var pods []string
		for _, pod := range u.Pods {
			pods = append(pods, pod.Name+"="+pod.Spec.Containers[0].Image)
		}
		slices.Sort(pods) // in the kubelet at random
		lines = append(lines, strings.TrimSpace(string(u.Op)+" "+strings.Join(pods, " ")))
	}
	return lines
}

// play plays a story to our file source.
func (f folder) play(t *testing.T) (updates []sources.PodUpdate) {
	root := t.TempDir()
	put := func(file file) {
		path := filepath.Join(root, file.Path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		temporary := filepath.Join(filepath.Dir(path), ".new")
		require.NoError(t, os.WriteFile(temporary, []byte(file.Data), 0o600))
		require.NoError(t, os.Rename(temporary, path))
	}
	for _, file := range f.Before {
		put(file)
	}
	s := sources.New("node-1", sources.LikeKubelet(), sources.WithRelease(asked), sources.File(filepath.Join(root, f.Path), static.WithInterval(time.Hour)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	updates = append(updates, <-s.Updates())
	require.Eventually(t, func() bool { return strings.HasPrefix(s.Status()[0].Mode, "inotify") }, 10*time.Second, time.Millisecond)
	for i := range len(f.Then) + 1 {
		if i > 0 {
			put(f.Then[i-1])
		}
		sentinel := fmt.Sprint("sentinel-", i)
		put(podFile(filepath.Join(f.Path, sentinel+".yaml"), sentinel, "i", ""))
		for u := range s.Updates() {
			if u.Pods[0].Name == sentinel+"-node-1" {
				break
			}
			updates = append(updates, u)
		}
	}
	cancel()
	for range s.Updates() {
	}
	require.NoError(t, <-ended)
	return updates
}
