package h2park

import "strconv"

// receiveLocked passes to the server what the client has sent, and returns how much of it: the rest
// is the beginning of a frame.
func (c *conn) receiveLocked(p []byte) (taken int) {
	for taken < len(p) {
		piece := c.in.cut(p[taken:])
		switch piece.kind {
		case partial:
			return taken
		case payload:
			c.passLocked(piece.bytes)
		case control:
			if c.controlLocked(piece.head, piece.bytes) {
				c.passLocked(piece.bytes)
			}
		case begin:
			c.beginLocked(piece.head)
		}
		taken += len(piece.bytes)
		if c.in.left == 0 {
			c.passLocked(c.suffix)
			c.suffix = nil
		}
		c.began = c.began || piece.kind != payload
		c.injectLocked(nil)
	}
	if c.in.atBoundary() {
		c.inBound.Broadcast()
	}
	return taken
}

// passLocked passes bytes to the server, as long as there is one.
func (c *conn) passLocked(b []byte) {
	if len(b) > 0 && !c.detached && c.err == nil {
		c.pipe = append(c.pipe, b...)
		c.more.Broadcast()
	}
}

// injectLocked adds frames to what the client sends, as soon as they may stand there. The first
// frame is the client's.
func (c *conn) injectLocked(frames []byte) {
	c.inject = append(c.inject, frames...)
	if len(c.inject) > 0 && c.began && c.in.atBoundary() {
		c.passLocked(c.inject)
		c.inject = nil
	}
}

// beginLocked passes the head of a frame that is not collected.
func (c *conn) beginLocked(h head) {
	var s *Stream
	switch h.kind {
	case frameHeaders:
		if h.stream%2 == 1 && h.stream > c.lastStream {
			c.lastStream = h.stream
			s = c.openLocked(h.stream)
		}
		c.field, c.fieldOn = c.fieldFor(s, h), h.stream
	case frameContinuation:
		if h.stream != c.fieldOn {
			c.field = nil // an error
		}
	}
	if s == nil {
		s = c.streams[h.stream]
	}
	if s != nil {
		c.sawLocked(s, h)
	}
	if block := h.kind == frameHeaders || h.kind == frameContinuation; block && h.has(flagEndHeaders) {
		unpadded := h.kind == frameContinuation || !h.has(flagPadded)
		if c.field != nil && unpadded && h.length+len(c.field) <= c.maxFrame {
			c.suffix = c.field
			h.length += len(c.field)
		} else if c.field != nil && c.crowdedLocked() {
			c.breakLocked(0) // it should know better
		}
		c.field = nil
	}
	c.passLocked(h.appendTo(nil))
}

// openLocked begins a stream.
func (c *conn) openLocked(id uint32) *Stream {
	if c.leaving || c.err != nil {
		return nil // the server looks at none any more
	}
	s := &Stream{conn: c, id: id, window: c.windowOf - c.growth}
	c.streams[id] = s
	c.idleStopLocked()
	return s
}

// sawLocked notes what a frame says about its stream. A client that goes on sending on a parked
// stream is told so by the server, which takes it for closed.
func (c *conn) sawLocked(s *Stream, h head) {
	if s.parked && c.detached {
		c.own = appendNumber(c.own, frameReset, s.id, codeStreamClosed)
		c.reply = true
		c.closeLocked(s)
		return
	}
	if (h.kind == frameHeaders || h.kind == frameData) && h.has(flagEndStream) {
		if s.clientDone = true; s.serverDone {
			c.closeLocked(s)
		}
	}
}

// crowdedLocked reports whether there are more streams than the server allows, though the server
// does not see it.
func (c *conn) crowdedLocked() bool {
	return c.parked > 0 && len(c.streams) > int(min(c.maxStreams, maxWindow))
}

// fieldFor is what to append to the header block of a stream that begins: who it is, for its
// handler; or, if it is one too many, a field that the server must refuse it for.
func (c *conn) fieldFor(s *Stream, h head) []byte {
	switch {
	case s == nil:
		return nil
	case c.crowdedLocked():
		return appendField(nil, ":x", "")
	case !h.has(flagEndStream):
		return nil
	}
	return appendField(nil, fieldName, c.secret+strconv.FormatUint(uint64(s.id), 10))
}

// appendField appends a literal field that is never indexed, RFC 7541, section 6.2.3: it leaves the
// decoder's table as it is. Name and value are shorter than 127 bytes.
func appendField(b []byte, name, value string) []byte {
	b = append(b, 0x10, byte(len(name)))
	b = append(append(b, name...), byte(len(value)))
	return append(b, value...)
}

// controlLocked looks at a control frame. It is false if the server must not see it.
func (c *conn) controlLocked(h head, frame []byte) (pass bool) {
	switch {
	case h.kind == frameSettings && h.has(flagAck):
	case h.kind == frameSettings:
		settings(frame, func(id uint16, value uint32) {
			if id == settingInitialWindow && value <= maxWindow {
				c.resizeLocked(int64(value))
			}
		})
		if c.detached {
			c.replyLocked(head{kind: frameSettings, flags: flagAck}, nil)
			c.growLocked()
		}
	case h.kind == framePing && c.detached && !h.has(flagAck) && h.length == 8:
		c.replyLocked(head{length: 8, kind: framePing, flags: flagAck}, frame[headBytes:])
	case h.kind == frameReset && h.length == 4:
		if s := c.streams[h.stream]; s != nil {
			c.closeLocked(s)
		}
	case h.kind == frameWindowUpdate && h.length == 4:
		return c.grantLocked(h.stream, int64(number(frame, 0)&maxWindow))
	}
	return true
}

func (c *conn) replyLocked(h head, payload []byte) {
	c.own = append(h.appendTo(c.own), payload...)
	c.reply = true
}

// resizeLocked changes the windows of all streams. A larger one counts when the server has
// acknowledged it, a smaller one at once.
func (c *conn) resizeLocked(to int64) {
	by := to - c.windowOf
	c.windowOf = to
	if by > 0 {
		c.growth += by
		return
	}
	for _, s := range c.streams {
		s.window += by
	}
}

// growLocked has the growth of windows count.
func (c *conn) growLocked() {
	for _, s := range c.streams {
		s.window += c.growth
		s.wakeLocked()
	}
	c.growth = 0
}

// grantLocked adds to a window. It is false if the server must not see that.
func (c *conn) grantLocked(stream uint32, n int64) (pass bool) {
	if stream > 0 {
		if s := c.streams[stream]; s != nil {
			if s.window += n; s.window > maxWindow && s.parked {
				c.own = appendNumber(c.own, frameReset, s.id, codeFlowControl)
				c.reply = true
				c.closeLocked(s)
			}
			s.wakeLocked()
		}
		return true
	}
	if n == 0 {
		return true // an error
	}
	if !c.credit.grant(n) {
		c.breakLocked(maxWindow)
		return false
	}
	c.refillLocked()
	for s := range c.waiting {
		s.wakeLocked()
	}
	return false
}

// breakLocked has the server find an error: two grants of that much, which are too many or none.
func (c *conn) breakLocked(n uint32) {
	grant := appendNumber(nil, frameWindowUpdate, 0, n)
	c.injectLocked(append(grant, grant...))
	c.failed = true
}

// refillLocked gives the server of what the client has granted.
func (c *conn) refillLocked() {
	if n := c.credit.refill(len(c.waiting) > 0); n > 0 {
		c.injectLocked(appendNumber(nil, frameWindowUpdate, 0, uint32(n)))
	}
}
