package watchcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A journal's file is a magic number and blocks:
//
//	length of the body, 4 bytes | CRC-32C of the length and the body, 4 bytes | body
//
// A body has entries, each with its kind and its parts. A block counts as a whole or not at all, so
// that all changes of a gap are in one. Numbers in headers are big-endian.
const (
	journalMagic = "TRBJRNL\x02"
	blockHeader  = 8
)

// entryKind is the first byte of an entry.
type entryKind byte

const (
	headEntry   entryKind = 'H' // of what the journal is, and the bounds of its history
	objectEntry entryKind = 'O' // an object of the base
	putEntry    entryKind = 'P' // a change to another state of an object
	goneEntry   entryKind = 'D' // a change to no object
	gapEntry    entryKind = 'G' // a gap, whose changes follow
	atEntry     entryKind = 'A' // a version that the content has reached
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a block, whatever stands in the place of it.
func checksum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:4], castagnoli), castagnoli, body)
}

// block is entries that are still to be written, behind the room for a header.
type block struct{ bytes []byte }

func (b *block) begin(kind entryKind) {
	if len(b.bytes) == 0 {
		b.bytes = append(b.bytes, make([]byte, blockHeader)...)
	}
	b.bytes = append(b.bytes, byte(kind))
}

func (b *block) number(n uint64) { b.bytes = binary.AppendUvarint(b.bytes, n) }

func (b *block) text(s string) {
	b.number(uint64(len(s)))
	b.bytes = append(b.bytes, s...)
}

func (b *block) flag(is bool) {
	n := uint64(0)
	if is {
		n = 1
	}
	b.number(n)
}

// seal completes the block.
func (b *block) seal() {
	body := b.bytes[blockHeader:]
	binary.BigEndian.PutUint32(b.bytes, uint32(len(body)))
	binary.BigEndian.PutUint32(b.bytes[4:], checksum(b.bytes, body))
}

// blocks reads the entries of a file, and knows how far its blocks are whole. Once an entry lacks a
// part, all further parts are empty, and bad is true.
type blocks struct {
	from io.Reader
	left int64  // bytes of the file behind the last whole block
	good int64  // the end of that block
	body []byte // of that block
	rest []byte // of the body
	bad  bool
}

// openBlocks begins after the magic number.
func openBlocks(file io.Reader, size int64) (*blocks, error) {
	b := &blocks{from: bufio.NewReaderSize(file, 256<<10)}
	magic := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(b.from, magic); err != nil || string(magic) != journalMagic {
		return nil, errors.New("it is not a journal, or one of another format version")
	}
	b.good = int64(len(magic))
	b.left = size - b.good
	return b, nil
}

// next reads the next block. A block that is not whole is the end of the file, io.EOF: the process
// ended while it wrote the block, or the disk has damaged it.
func (b *blocks) next() error {
	var header [blockHeader]byte
	if _, err := io.ReadFull(b.from, header[:]); err != nil {
		return end(err)
	}
	length := int64(binary.BigEndian.Uint32(header[:]))
	if length > b.left-blockHeader {
		return io.EOF
	}
	if int64(cap(b.body)) < length {
		b.body = make([]byte, length, length+length/4)
	}
	b.body = b.body[:length]
	if _, err := io.ReadFull(b.from, b.body); err != nil {
		return end(err)
	}
	if checksum(header[:], b.body) != binary.BigEndian.Uint32(header[4:]) {
		return io.EOF
	}
	b.rest = b.body
	b.good += blockHeader + length
	b.left -= blockHeader + length
	return nil
}

// end has a file that ends within a block end before it.
func end(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// entry is the kind of the next entry, which is valid until the next call, or io.EOF.
func (b *blocks) entry() (kind entryKind, err error) {
	for len(b.rest) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	kind, b.rest = entryKind(b.rest[0]), b.rest[1:]
	return kind, nil
}

func (b *blocks) number() uint64 {
	n, length := binary.Uvarint(b.rest)
	if length <= 0 {
		b.bad, b.rest = true, nil
		return 0
	}
	b.rest = b.rest[length:]
	return n
}

func (b *blocks) flag() bool { return b.number() == 1 }

func (b *blocks) text() string { return string(b.part()) }

// part is a text that the next block overwrites.
func (b *blocks) part() (part []byte) {
	length := b.number()
	if length > uint64(len(b.rest)) {
		b.bad, b.rest = true, nil
		return nil
	}
	part, b.rest = b.rest[:length], b.rest[length:]
	return part
}
