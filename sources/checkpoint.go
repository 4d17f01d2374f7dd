package sources

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/checkpoint"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

// Checkpoint keeps the last complete state of each API server source in a folder, in a file of mode
// 0600 for each node and name of a source. The package lookup keeps its owners and ended pods there
// too. Several API servers need names: see [Input.Named]. If the API server is away after a
// restart, the pods of the checkpoint are told at once, as [PodUpdate].Restored; later states of
// the API server are told as differences. A restored state does not count as read: Synced waits on,
// and SafeToPrune is false. A file that is incomplete, or of another node, is not used. It is a
// problem of the source until the next save.
//
// The folder must exist, or Run fails; the agent alone may write it. It must keep secrets as safely
// as the pods demand. A file is not used if it is a link, or if others may write it. Each state is
// written to a new file of mode 0600 and renamed. The rest of a crashed write is removed a minute
// later, or at the next start after that. A state is written within a second of a change, and when
// Run ends. A large one is written more seldom, so that this takes a twentieth of the time at most.
// Default: no checkpoint. Under [LikeKubelet] there is none.
func Checkpoint(folder string) Option {
	return option(func(s *Sources) { s.checkpoints = folder })
}

// Checkpoints is the folder of [Checkpoint]. It is empty if there are no checkpoints.
func (s *Sources) Checkpoints() string {
	if s.likeKubelet {
		return ""
	}
	return s.checkpoints
}

// checkFolder refuses a folder in which no checkpoint can ever be kept.
func (s *Sources) checkFolder() error {
	if s.Checkpoints() == "" {
		return nil
	}
	if err := checkpoint.CheckFolder(s.Checkpoints()); err != nil {
		return fmt.Errorf("sources: Checkpoint: %w", err)
	}
	return nil
}

// checkCheckpoints refuses two API servers that would write one file.
func (s *Sources) checkCheckpoints(feeds []*feed) error {
	if s.Checkpoints() == "" {
		return nil
	}
	names := map[string]bool{}
	for _, f := range feeds {
		if _, ok := f.source.(checkpointer); !ok || f.isRemoved() {
			continue
		}
		if names[f.name] {
			return fmt.Errorf("sources: two API servers are named %q, and a checkpoint has the pods of one: tell them apart with Named", f.name)
		}
		names[f.name] = true
	}
	return nil
}

// checkpointOf is the file with the pods of a source. The files of [APISource] have no name of a
// source.
func checkpointOf(folder, node, source string) checkpoint.File[Pods] {
	if source == APISource {
		source = ""
	}
	return checkpoint.In(folder, node, source, podContent)
}

// podContent is a v1.PodList.
var podContent = checkpoint.Content[Pods]{Magic: "TRBPODS\x01", Suffix: ".pods", Encode: encodePods, Decode: decodePods}

func encodePods(pods Pods) ([]byte, error) {
	list := corev1.PodList{}
	list.ResourceVersion = pods.ResourceVersion()
	for _, pod := range pods.Sorted() {
		list.Items = append(list.Items, *pod)
	}
	return list.Marshal()
}

func decodePods(body []byte) (Pods, error) {
	var list corev1.PodList
	if err := list.Unmarshal(body); err != nil {
		return Pods{}, errors.New("its pods cannot be decoded")
	}
	items := func(yield func(*corev1.Pod, error) bool) {
		for i := range list.Items {
			pod := list.Items[i] // a copy, so that one pod does not keep the whole list alive
			if !yield(&pod, nil) {
				return
			}
		}
	}
	var pods store.Indexer[*corev1.Pod]
	if err := pods.Replace(items, store.At(list.ResourceVersion)); err != nil {
		return Pods{}, err
	}
	return pods.Snapshot(), nil
}

// restoreInto fills a store with pods of a checkpoint, so that no older state is ever told.
func restoreInto(copied *undelta.Store[*corev1.Pod], restored Pods) error {
	if restored.ResourceVersion() == "" {
		return nil
	}
	return copied.Replace(func(yield func(*corev1.Pod, error) bool) {
		for _, pod := range restored.All() {
			if !yield(pod, nil) {
				return
			}
		}
	}, store.At(restored.ResourceVersion()))
}
