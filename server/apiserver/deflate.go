package apiserver

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

// gzipStream writes a gzip member (RFC 1952). Pieces of it may be compressed already, so that many
// answers share the work.
type gzipStream struct {
	to       io.Writer
	deflater       // its z is nil while there are only pieces
	failed   error // to write the header
}

// deflater compresses, and notes the checksum and the length of its input.
type deflater struct {
	z    *flate.Writer // takes more than a megabyte
	crc  uint32
	size int
}

func (d *deflater) Write(p []byte) (int, error) {
	d.crc = crc32.Update(d.crc, crc32.IEEETable, p)
	d.size += len(p)
	return d.z.Write(p)
}

// The fastest level, as in the API server.
var flates = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for an unknown level
	return z
}}

func newGzipStream(to io.Writer) *gzipStream {
	s := &gzipStream{to: to}
	// Deflate, no flags, no time, the fastest level, an unknown system.
	_, s.failed = to.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255})
	return s
}

func (s *gzipStream) Write(p []byte) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.z == nil {
		s.z = flates.Get().(*flate.Writer)
		s.z.Reset(s.to)
	}
	return s.deflater.Write(p)
}

// Flush sends the present text, up to the border of a byte.
func (s *gzipStream) Flush() error {
	if s.failed != nil || s.z == nil {
		return s.failed
	}
	return s.z.Flush()
}

// writePiece writes a compressed piece. Nothing after it refers to the text before it.
func (s *gzipStream) writePiece(p *piece) error {
	if err := s.Flush(); err != nil {
		return err
	}
	s.giveBack()
	s.crc = combine(s.crc, p.crc, p.size)
	s.size += p.size
	_, err := s.to.Write(p.deflated)
	return err
}

// giveBack is called after a Flush without an error: see bursts.
func (s *gzipStream) giveBack() {
	if s.z != nil {
		flates.Put(s.z)
		s.z = nil
	}
}

// Close ends the member.
func (s *gzipStream) Close() error {
	if err := s.Flush(); err != nil {
		return err
	}
	s.giveBack()
	end := []byte{1, 0, 0, 0xff, 0xff} // the last block, with nothing in it
	end = binary.LittleEndian.AppendUint32(end, s.crc)
	_, err := s.to.Write(binary.LittleEndian.AppendUint32(end, uint32(s.size)))
	return err
}

// piece is a part of a deflate stream (RFC 1951) that refers to nothing before it and ends at the
// border of a byte.
type piece struct {
	deflated []byte
	crc      uint32
	size     int // of the plain text
}

// newPiece compresses the output of write.
func newPiece(write func(io.Writer) error) (*piece, error) {
	var deflated bytes.Buffer
	d := deflater{z: flates.Get().(*flate.Writer)}
	defer flates.Put(d.z)
	d.z.Reset(&deflated)
	if err := write(&d); err != nil {
		return nil, err
	}
	_ = d.z.Flush() // a bytes.Buffer takes everything
	return &piece{bytes.Clone(deflated.Bytes()), d.crc, d.size}, nil
}

// combine is the checksum of two texts behind each other, of which the second has a length. A
// checksum is a polynomial over GF(2): the first is multiplied by x to the number of bits behind
// it.
func combine(first, second uint32, length int) uint32 {
	power := uint32(1) << 31 // 1, as the highest bit is the lowest power
	square := uint32(1) << 23
	for ; length > 0; length >>= 1 { // x^8, x^16, x^32, …
		if length&1 == 1 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return multiply(power, first) ^ second
}

// multiply multiplies two polynomials modulo that of the checksum.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
