package watchcache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A journal's file is a magic number and records:
//
//	length of the body, 4 bytes | CRC-32C of the length, 4 bytes | CRC-32C of the body, 4 bytes | body
//
// Numbers are big-endian. The first byte of a body is the record's type.
const (
	journalMagic = "TRBJRNL\x01"
	recordHeader = 12
	// maxRecord is far above the objects of an API server, which ends at some megabytes.
	maxRecord = 64 << 20
)

// recordType is the first byte of a record.
type recordType byte

const (
	headRecord   recordType = 'H' // of what the journal is, and the bounds of its history
	objectRecord recordType = 'O' // an object of the base
	putRecord    recordType = 'P' // a change to another state of an object
	goneRecord   recordType = 'D' // a change to no object
	gapRecord    recordType = 'G' // a gap, with the number of its changes, which follow
	atRecord     recordType = 'A' // a bookmark
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// records are records that are still to be written.
type records struct {
	bytes []byte
	from  int // of the record under way
}

func (r *records) begin(kind recordType) {
	r.from = len(r.bytes)
	r.bytes = append(r.bytes, make([]byte, recordHeader)...)
	r.bytes = append(r.bytes, byte(kind))
}

// end completes the record under way.
func (r *records) end() {
	header, body := r.bytes[r.from:r.from+recordHeader], r.bytes[r.from+recordHeader:]
	binary.BigEndian.PutUint32(header, uint32(len(body)))
	binary.BigEndian.PutUint32(header[4:], crc32.Checksum(header[:4], castagnoli))
	binary.BigEndian.PutUint32(header[8:], crc32.Checksum(body, castagnoli))
}

func (r *records) number(n uint64) { r.bytes = binary.AppendUvarint(r.bytes, n) }

func (r *records) text(s string) {
	r.number(uint64(len(s)))
	r.bytes = append(r.bytes, s...)
}

func (r *records) flag(is bool) {
	n := uint64(0)
	if is {
		n = 1
	}
	r.number(n)
}

// record reads the body of a record. Once something is missing, all further parts are empty, and
// whole is false.
type record struct {
	kind recordType
	rest []byte
	bad  bool
}

func (r *record) number() uint64 {
	n, length := binary.Uvarint(r.rest)
	if length <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[length:]
	return n
}

func (r *record) text() string {
	length := r.number()
	if length > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:length])
	r.rest = r.rest[length:]
	return text
}

func (r *record) flag() bool { return r.number() == 1 }

var (
	// errTorn is a record that was being written when the process, or the machine, ended.
	errTorn = errors.New("it is cut off")
	// errDamaged is a record that is not what was written.
	errDamaged = errors.New("it is damaged")
)

// recordReader reads the records of a file, and knows how far they are whole.
type recordReader struct {
	from io.Reader
	size int64 // of the file
	good int64 // the end of the last whole record
	body []byte
}

// openRecords begins after the magic number.
func openRecords(file io.Reader, size int64) (*recordReader, error) {
	r := &recordReader{from: bufio.NewReaderSize(file, 256<<10), size: size}
	magic := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(r.from, magic); err != nil || string(magic) != journalMagic {
		return nil, errors.New("it is not a journal, or one of another format version")
	}
	r.good = int64(len(magic))
	return r, nil
}

// next returns the next record, which is valid until the next call. The error is io.EOF at the end
// of the file, errTorn in the last record, and errDamaged before that.
func (r *recordReader) next() (record, error) {
	left := r.size - r.good
	switch {
	case left == 0:
		return record{}, io.EOF
	case left < recordHeader:
		return record{}, errTorn
	}
	var header [recordHeader]byte
	if _, err := io.ReadFull(r.from, header[:]); err != nil {
		return record{}, r.failed(err)
	}
	length := int64(binary.BigEndian.Uint32(header[:]))
	if crc32.Checksum(header[:4], castagnoli) != binary.BigEndian.Uint32(header[4:]) || length == 0 || length > maxRecord {
		return record{}, r.broken()
	}
	if length > left-recordHeader {
		return record{}, errTorn
	}
	if int64(cap(r.body)) < length {
		r.body = make([]byte, length, length+length/4)
	}
	r.body = r.body[:length]
	if _, err := io.ReadFull(r.from, r.body); err != nil {
		return record{}, r.failed(err)
	}
	if crc32.Checksum(r.body, castagnoli) != binary.BigEndian.Uint32(header[8:]) {
		return record{}, r.broken()
	}
	r.good += recordHeader + length
	return record{kind: recordType(r.body[0]), rest: r.body[1:]}, nil
}

func (r *recordReader) damaged() error { return fmt.Errorf("%w at byte %d", errDamaged, r.good) }

func (r *recordReader) failed(err error) error {
	return fmt.Errorf("it cannot be read at byte %d: %w", r.good, err)
}

// broken judges a record that is not whole. It is the last one if nothing follows it. After a crash
// of the machine a file may be longer than its content, and ends in zeros then.
func (r *recordReader) broken() error {
	for part := make([]byte, 4096); ; {
		n, err := r.from.Read(part)
		for _, b := range part[:n] {
			if b != 0 {
				return r.damaged()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return errTorn
		case err != nil:
			return r.failed(err)
		}
	}
}
