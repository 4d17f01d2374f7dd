package h2park

import "encoding/binary"

// Types and flags of frames, RFC 9113, sections 6 and 7.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagAck        = 0x1 // of SETTINGS and PING
	flagEndStream  = 0x1 // of DATA and HEADERS
	flagEndHeaders = 0x4
	flagPadded     = 0x8

	settingMaxStreams    = 0x3
	settingInitialWindow = 0x4
	settingMaxFrame      = 0x5

	codeFlowControl  = 0x3
	codeStreamClosed = 0x5
	codeCancel       = 0x8
)

const (
	headBytes     = 9
	prefaceBytes  = 24    // of a client that begins
	initialWindow = 65535 // of a stream and of the connection
	initialFrame  = 16384 // the largest that everybody takes
	maxWindow     = 1<<31 - 1
	// A frame that is looked at is collected first. Longer SETTINGS than a hundred are an error to
	// the server, and debug data of a GOAWAY is short.
	longestControl = 600
)

// head is the head of a frame.
type head struct {
	length      int
	kind, flags byte
	stream      uint32
}

func parseHead(b []byte) head {
	return head{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]), kind: b[3], flags: b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxWindow,
	}
}

func (h head) has(flag byte) bool { return h.flags&flag != 0 }

// appendTo appends the head as it is on the wire.
func (h head) appendTo(b []byte) []byte {
	b = append(b, byte(h.length>>16), byte(h.length>>8), byte(h.length), h.kind, h.flags)
	return binary.BigEndian.AppendUint32(b, h.stream)
}

// appendNumber appends a frame of four bytes: a RST_STREAM or a WINDOW_UPDATE.
func appendNumber(b []byte, kind byte, stream, number uint32) []byte {
	return binary.BigEndian.AppendUint32(head{length: 4, kind: kind, stream: stream}.appendTo(b), number)
}

// isControl reports whether a frame is looked at as a whole.
func (h head) isControl() bool {
	switch h.kind {
	case frameReset, frameSettings, framePing, frameGoAway, frameWindowUpdate:
		return h.length <= longestControl
	}
	return false
}

// scanner cuts what one side sends into frames. The zero value begins at a head.
type scanner struct {
	left  int  // bytes of a payload that are still to come
	block bool // in a header block: CONTINUATION must follow
}

// piece is a part of what was sent: a control frame as a whole, the head of another frame, or some
// of its payload.
type piece struct {
	head
	bytes []byte
	kind  pieceKind
}

type pieceKind int

const (
	partial pieceKind = iota // more bytes are needed
	control
	begin
	payload
)

// cut cuts the first piece off p.
func (s *scanner) cut(p []byte) piece {
	if s.left > 0 {
		n := min(len(p), s.left)
		s.left -= n
		return piece{bytes: p[:n], kind: payload}
	}
	if len(p) < headBytes {
		return piece{}
	}
	h := parseHead(p)
	if h.isControl() {
		if len(p) < headBytes+h.length {
			return piece{}
		}
		return piece{head: h, bytes: p[:headBytes+h.length], kind: control}
	}
	s.left = h.length
	switch h.kind {
	case frameHeaders, framePush, frameContinuation:
		s.block = !h.has(flagEndHeaders)
	}
	return piece{head: h, bytes: p[:headBytes], kind: begin}
}

// atBoundary reports whether another frame may be put here.
func (s *scanner) atBoundary() bool { return s.left == 0 && !s.block }

// settings calls each for the settings of a frame, in order.
func settings(frame []byte, each func(id uint16, value uint32)) {
	for b := frame[headBytes:]; len(b) >= 6; b = b[6:] {
		each(binary.BigEndian.Uint16(b), binary.BigEndian.Uint32(b[2:]))
	}
}

// number is the payload of a RST_STREAM or WINDOW_UPDATE, or of a GOAWAY from its second word.
func number(frame []byte, at int) uint32 { return binary.BigEndian.Uint32(frame[headBytes+at:]) }
