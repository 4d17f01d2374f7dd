package sources

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// A checkpoint is the last complete state of one API server source, in a file of its own. The file
// is written beside its final name, synced and renamed into place. So a crash leaves the old state
// or the new one. Earlier files at either name are neither trusted nor followed.
//
//	magic, 8 bytes | length of the node's name, 4 bytes | name |
//	length of the list, 8 bytes | list, a protobuf v1.PodList |
//	SHA-256 of everything before
//
// Numbers are big-endian.
const (
	checkpointMagic   = "TRBPODS\x01"
	checkpointLimit   = 256 << 20 // a node has a few hundred pods of a few KB
	checkpointSum     = sha256.Size
	checkpointMinimum = len(checkpointMagic) + 4 + 8 + checkpointSum
)

// checkpoint is the file with the pods of one source for one node.
type checkpoint struct {
	path string
	node string
}

// maxFileName leaves room for the suffixes of temporary files; file systems take 255 bytes.
const maxFileName = 200

// newCheckpoint names the file in a folder. The name of a node is a DNS name, so it is a good file
// name without an underscore. The name of a source may be anything. A long name ends in a hash.
func newCheckpoint(folder, node, source string) checkpoint {
	name := node
	if source != APISource {
		name += "_" + url.QueryEscape(source)
	}
	if len(name) > maxFileName {
		name = fmt.Sprintf("%s_%x", name[:maxFileName-2*sha256.Size-1], sha256.Sum256([]byte(name)))
	}
	return checkpoint{path: filepath.Join(folder, name+".pods"), node: node}
}

// save writes a state. If it fails, the old file is intact.
func (c checkpoint) save(pods Pods) error {
	data, err := c.encode(pods)
	if err == nil {
		err = writeAtomically(c.path, data)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.path, err)
	}
	return nil
}

// load reads the state that was saved last. Without a file it fails with fs.ErrNotExist. It fails
// with another error if the file is incomplete, is of another node, or is writable by others. Such
// a file stays until the next save replaces it.
func (c checkpoint) load() (Pods, error) {
	removeStale(c.path)
	data, err := readPrivate(c.path, checkpointLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return Pods{}, err
	}
	var pods Pods
	if err == nil {
		pods, err = c.decode(data)
	}
	if err != nil {
		return Pods{}, fmt.Errorf("checkpoint %s is not used: %w", c.path, err)
	}
	return pods, nil
}

func (c checkpoint) encode(pods Pods) ([]byte, error) {
	list := corev1.PodList{}
	list.ResourceVersion = pods.ResourceVersion()
	for _, pod := range pods.Sorted() {
		list.Items = append(list.Items, *pod)
	}
	body, err := list.Marshal()
	if err != nil {
		return nil, fmt.Errorf("the pods cannot be encoded: %w", err)
	}
	data := []byte(checkpointMagic)
	data = binary.BigEndian.AppendUint32(data, uint32(len(c.node)))
	data = append(data, c.node...)
	data = binary.BigEndian.AppendUint64(data, uint64(len(body)))
	data = append(data, body...)
	sum := sha256.Sum256(data)
	if data = append(data, sum[:]...); len(data) > checkpointLimit {
		return nil, fmt.Errorf("%d pods are more than the limit of %d MiB", pods.Len(), checkpointLimit>>20)
	}
	return data, nil
}

func (c checkpoint) decode(data []byte) (Pods, error) {
	if len(data) < checkpointMinimum {
		return Pods{}, fmt.Errorf("it has %d bytes: it is cut off", len(data))
	}
	if !bytes.HasPrefix(data, []byte(checkpointMagic)) {
		return Pods{}, errors.New("it is not a checkpoint, or one of another version")
	}
	signed, sum := data[:len(data)-checkpointSum], data[len(data)-checkpointSum:]
	if got := sha256.Sum256(signed); !bytes.Equal(got[:], sum) {
		return Pods{}, errors.New("its checksum is wrong: it is cut off or damaged")
	}
	rest := signed[len(checkpointMagic):]
	node, rest := rest[4:], rest[4:]
	// The checksum holds, so these lengths are those of save.
	size := binary.BigEndian.Uint32(signed[len(checkpointMagic):])
	node, rest = node[:size], rest[size:]
	if string(node) != c.node {
		return Pods{}, fmt.Errorf("it is of node %q", node)
	}
	return podsOf(rest[8:])
}

// podsOf decodes the list of a checkpoint.
func podsOf(body []byte) (Pods, error) {
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
