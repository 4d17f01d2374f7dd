package backup

import (
	"encoding/binary"
	"errors"
	"io"

	"go.etcd.io/bbolt"
)

// errCycle is a damage that bbolt does not survive: it follows the pages until memory is over.
var errCycle = errors.New("a page of it leads back to itself")

// checkPages returns errCycle if a page of the database is below itself. It reads pages as bbolt
// does, and leaves all other damage to it.
func checkPages(db *bbolt.DB, file io.ReaderAt) error {
	return db.View(func(tx *bbolt.Tx) error {
		w := walk{file: file, size: int64(db.Info().PageSize), seen: map[int64]bool{}}
		return w.page(int64(tx.Cursor().Bucket().Root()) * w.size)
	})
}

// walk follows pages depth first.
type walk struct {
	file io.ReaderAt
	size int64          // of a page
	seen map[int64]bool // by offset, whether the pages below a page are being followed
}

// The format of bbolt's pages, in bytes: a header with the page's type and its number of elements,
// then the elements. An element of a branch ends with the page below it. One of a leaf has its
// flags, the position of its key, and the lengths of key and value. The value of a bucket begins
// with its root, or has a page of its own within.
const (
	header, element      = 16, 16
	typeAt, countAt      = 8, 10
	leaf, bucket         = 2, 1
	below                = 8
	posAt, keyAt, rootOf = 4, 8, 16
)

func (w *walk) page(at int64) error {
	if following, seen := w.seen[at]; following {
		return errCycle
	} else if seen {
		return nil
	}
	var head [header]byte
	if !w.read(head[:], at) {
		return nil
	}
	w.seen[at] = true
	defer func() { w.seen[at] = false }()
	count := int(binary.LittleEndian.Uint16(head[countAt:]))
	isLeaf := binary.LittleEndian.Uint16(head[typeAt:]) == leaf
	from := at + header
	if !isLeaf && count == 0 { // bbolt then takes what is beside the elements for one
		from, count = at, 2
	}
	elements := make([]byte, count*element)
	n, _ := w.file.ReadAt(elements, from) // bbolt finds that the file is too short
	for i := range n / element {
		e := elements[i*element:][:element]
		next := w.offset(binary.LittleEndian.Uint64(e[below:]))
		if isLeaf {
			next = w.bucket(from+int64(i)*element, e)
		}
		if next == 0 {
			continue
		}
		if err := w.page(next); err != nil {
			return err
		}
	}
	return nil
}

// bucket is the offset of the root of an element of a leaf; 0 if it is no bucket.
func (w *walk) bucket(start int64, e []byte) int64 {
	if binary.LittleEndian.Uint32(e)&bucket == 0 {
		return 0
	}
	value := start + int64(binary.LittleEndian.Uint32(e[posAt:])) + int64(binary.LittleEndian.Uint32(e[keyAt:]))
	var root [8]byte
	if !w.read(root[:], value) {
		return 0
	}
	if id := binary.LittleEndian.Uint64(root[:]); id != 0 {
		return w.offset(id)
	}
	return value + rootOf
}

// offset is -1 for a page that no file has.
func (w *walk) offset(id uint64) int64 {
	if id > 1<<40 {
		return -1
	}
	return int64(id) * w.size
}

func (w *walk) read(into []byte, at int64) bool {
	if at < 0 {
		return false
	}
	_, err := w.file.ReadAt(into, at)
	return err == nil
}
