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

// A checkpoint is the last complete state of one API server source, or of all owners, in a file of
// its own. The file is written beside its final name, synced and renamed into place. So a crash
// leaves the old state or the new one. Earlier files at either name are neither trusted nor
// followed.
//
//	magic, 8 bytes | length of the node's name, 4 bytes | name |
//	length of the list, 8 bytes | list, in protobuf |
//	SHA-256 of everything before
//
// Numbers are big-endian.
const (
	magicLength       = 8
	checkpointLimit   = 256 << 20 // a node has a few hundred pods of a few KB
	checkpointSum     = sha256.Size
	checkpointMinimum = magicLength + 4 + 8 + checkpointSum
)

// content is how a state of type S is kept.
type content[S any] struct {
	magic  string // of magicLength
	suffix string // of the file's name
	encode func(S) ([]byte, error)
	decode func([]byte) (S, error)
}

// podContent is a v1.PodList.
var podContent = content[Pods]{magic: "TRBPODS\x01", suffix: ".pods", encode: encodePods, decode: decodePods}

// checkpoint is a file with one state for one node.
type checkpoint[S any] struct {
	content[S]
	path string
	node string
}

// maxFileName leaves room for the suffixes of temporary files; file systems take 255 bytes.
const maxFileName = 200

// newCheckpoint is the file with the pods of a source.
func newCheckpoint(folder, node, source string) checkpoint[Pods] {
	return checkpointOf(podContent, folder, node, source)
}

// checkpointOf names the file in a folder. The name of a node is a DNS name, so it is a good file
// name without an underscore. The name of a source may be anything. A long name ends in a hash.
func checkpointOf[S any](of content[S], folder, node, source string) checkpoint[S] {
	name := node
	if source != APISource {
		name += "_" + url.QueryEscape(source)
	}
	if len(name) > maxFileName {
		name = fmt.Sprintf("%s_%x", name[:maxFileName-2*sha256.Size-1], sha256.Sum256([]byte(name)))
	}
	return checkpoint[S]{content: of, path: filepath.Join(folder, name+of.suffix), node: node}
}

// save writes a state. If it fails, the old file is intact.
func (c checkpoint[S]) save(state S) error {
	data, err := c.seal(state)
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
func (c checkpoint[S]) load() (state S, err error) {
	removeStale(c.path)
	data, err := readPrivate(c.path, checkpointLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return state, err
	}
	if err == nil {
		state, err = c.open(data)
	}
	if err != nil {
		return *new(S), fmt.Errorf("checkpoint %s is not used: %w", c.path, err)
	}
	return state, nil
}

// seal is the whole file with a state.
func (c checkpoint[S]) seal(state S) ([]byte, error) {
	body, err := c.encode(state)
	if err != nil {
		return nil, fmt.Errorf("the state cannot be encoded: %w", err)
	}
	data := []byte(c.magic)
	data = binary.BigEndian.AppendUint32(data, uint32(len(c.node)))
	data = append(data, c.node...)
	data = binary.BigEndian.AppendUint64(data, uint64(len(body)))
	data = append(data, body...)
	sum := sha256.Sum256(data)
	if data = append(data, sum[:]...); len(data) > checkpointLimit {
		return nil, fmt.Errorf("it has %d bytes, and the limit is %d MiB", len(data), checkpointLimit>>20)
	}
	return data, nil
}

// open is the state in a whole file.
func (c checkpoint[S]) open(data []byte) (state S, err error) {
	if len(data) < checkpointMinimum {
		return state, fmt.Errorf("it has %d bytes: it is cut off", len(data))
	}
	if !bytes.HasPrefix(data, []byte(c.magic)) {
		return state, errors.New("it is not a checkpoint, or one of another version")
	}
	signed, sum := data[:len(data)-checkpointSum], data[len(data)-checkpointSum:]
	if got := sha256.Sum256(signed); !bytes.Equal(got[:], sum) {
		return state, errors.New("its checksum is wrong: it is cut off or damaged")
	}
	rest := signed[magicLength:]
	// The checksum holds, so these lengths are those of save.
	size := binary.BigEndian.Uint32(rest)
	node, rest := rest[4:4+size], rest[4+size:]
	if string(node) != c.node {
		return state, fmt.Errorf("it is of node %q", node)
	}
	return c.decode(rest[8:])
}

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
