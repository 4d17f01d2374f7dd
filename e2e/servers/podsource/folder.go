package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

// folder is a story of manifests in a folder: those that are there at the start, and those that are
// put there one by one.
type folder struct {
	Path   string     `json:"path"` // of what the file source reads, in a new folder
	Before []manifest `json:"before"`
	Then   []manifest `json:"then"`
}

// manifest is a file; its path is in the new folder too.
type manifest struct {
	Path string `json:"path"`
	Data string `json:"data"`
}

// sentinel is the pod that tells that all events before it have been dealt with; %d is its number.
const sentinel = "apiVersion: v1\nkind: Pod\nmetadata: {name: sentinel-%d}\nspec: {containers: [{name: c, image: i}]}\n"

// play plays a story to the kubelet's own file source and merge, and returns the updates that came
// of it.
func (f folder) play() (updates []update, err error) {
	root, err := os.MkdirTemp("", "podsource")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	for _, file := range f.Before {
		if err := file.put(root); err != nil {
			return nil, err
		}
	}
	merged := config.NewPodConfig(&record.FakeRecorder{}, startup{})
	source := reflect.ValueOf(config.NewSourceFile)
	arguments := []any{logr.Discard(), filepath.Join(root, f.Path), node, time.Hour, merged.Channel(context.Background(), "file")}
	in := make([]reflect.Value, len(arguments))
	for i, argument := range arguments {
		in[i] = reflect.ValueOf(argument).Convert(source.Type().In(i))
	}
	go source.Call(in)
	first := <-merged.Updates()
	updates = []update{{names[first.Op], first.Source, first.Pods}}
	for i := range len(f.Then) + 1 {
		if i > 0 {
			if err := f.Then[i-1].put(root); err != nil {
				return nil, err
			}
		}
		mark := manifest{filepath.Join(f.Path, fmt.Sprintf("sentinel-%d.yaml", i)), fmt.Sprintf(sentinel, i)}
		for seen := false; !seen; {
			if err := mark.put(root); err != nil { // once more, until the watch has begun
				return nil, err
			}
			for quiet := time.After(100 * time.Millisecond); !seen && quiet != nil; {
				select {
				case u := <-merged.Updates():
					seen = slices.ContainsFunc(u.Pods, func(p *corev1.Pod) bool { return p.Name == fmt.Sprintf("sentinel-%d-%s", i, node) })
					if !seen {
						updates = append(updates, update{names[u.Op], u.Source, u.Pods})
					}
				case <-quiet:
					quiet = nil
				}
			}
		}
	}
	return updates, nil
}

// put replaces a file by a rename.
func (m manifest) put(root string) error {
	path := filepath.Join(root, m.Path)
	temporary := filepath.Join(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), "."))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(temporary, []byte(m.Data), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
