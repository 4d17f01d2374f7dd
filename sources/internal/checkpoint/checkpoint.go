// Package checkpoint keeps a state of one node in a file, over a restart of the process. The file
// is written beside its final name, synced and renamed into place. So a crash leaves the old state
// or the new one. Earlier files at either name are neither trusted nor followed.
//
//	magic, 8 bytes | length of the node's name, 4 bytes | name |
//	length of the state, 8 bytes | state, as its Content encodes it |
//	SHA-256 of everything before
//
// Numbers are big-endian.
package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/tributary-go/tributary/internal/ownfile"
)

const (
	magicLength = 8
	maxFile     = 256 << 20 // a node has a few hundred pods of a few KB
	sumLength   = sha256.Size
	minFile     = magicLength + 4 + 8 + sumLength
)

// Content is the form of a state of type S in a file.
type Content[S any] struct {
	Magic  string // of magicLength
	Suffix string // of the file's name
	Encode func(S) ([]byte, error)
	Decode func([]byte) (S, error)
}

// File is a file with one state for one node.
type File[S any] struct {
	content Content[S]
	path    string
	node    string
}

// maxFileName leaves room for the suffixes of temporary files; file systems take 255 bytes.
const maxFileName = 200

// In names the file in a folder. The name of a node is a DNS name, so it is a good file name
// without an underscore. name tells files of one node apart, and may be anything or empty. A long
// name ends in a hash.
func In[S any](folder, node, name string, content Content[S]) File[S] {
	base := node
	if name != "" {
		base += "_" + url.QueryEscape(name)
	}
	if len(base) > maxFileName {
		base = fmt.Sprintf("%s_%x", base[:maxFileName-2*sha256.Size-1], sha256.Sum256([]byte(base)))
	}
	return File[S]{content: content, path: filepath.Join(folder, base+content.Suffix), node: node}
}

// Save writes a state. If it fails, the old file is intact.
func (c File[S]) Save(state S) error {
	data, err := c.seal(state)
	if err == nil {
		err = ownfile.Replace(c.path, data)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.path, err)
	}
	return nil
}

// Load reads the state that was saved last. Without a file it fails with fs.ErrNotExist. It fails
// with another error if the file is incomplete, is of another node, or is writable by others. Such
// a file stays until the next save replaces it.
func (c File[S]) Load() (state S, err error) {
	ownfile.RemoveStale(c.path)
	data, err := readPrivate(c.path, maxFile)
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
func (c File[S]) seal(state S) ([]byte, error) {
	body, err := c.content.Encode(state)
	if err != nil {
		return nil, fmt.Errorf("the state cannot be encoded: %w", err)
	}
	data := []byte(c.content.Magic)
	data = binary.BigEndian.AppendUint32(data, uint32(len(c.node)))
	data = append(data, c.node...)
	data = binary.BigEndian.AppendUint64(data, uint64(len(body)))
	data = append(data, body...)
	sum := sha256.Sum256(data)
	if data = append(data, sum[:]...); len(data) > maxFile {
		return nil, fmt.Errorf("it has %d bytes, and the limit is %d MiB", len(data), maxFile>>20)
	}
	return data, nil
}

// open is the state in a whole file.
func (c File[S]) open(data []byte) (state S, err error) {
	if len(data) < minFile {
		return state, fmt.Errorf("it has %d bytes: it is cut off", len(data))
	}
	if !bytes.HasPrefix(data, []byte(c.content.Magic)) {
		return state, errors.New("it is not a checkpoint, or one of another version")
	}
	signed, sum := data[:len(data)-sumLength], data[len(data)-sumLength:]
	if got := sha256.Sum256(signed); !bytes.Equal(got[:], sum) {
		return state, errors.New("its checksum is wrong: it is cut off or damaged")
	}
	rest := signed[magicLength:]
	// The checksum holds, so these lengths are those of Save.
	size := binary.BigEndian.Uint32(rest)
	node, rest := rest[4:4+size], rest[4+size:]
	if string(node) != c.node {
		return state, fmt.Errorf("it is of node %q", node)
	}
	return c.content.Decode(rest[8:])
}
