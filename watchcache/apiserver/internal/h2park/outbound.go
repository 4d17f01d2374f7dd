package h2park

// sendLocked looks at what the server sends. It returns what of it is to be sent, and the beginning
// of a frame that is not whole yet.
func (c *conn) sendLocked(p []byte) (pass, rest []byte, err error) {
	at, from := 0, 0 // p[from:at] has been looked at, and is to be sent
	var kept []byte  // what is to be sent before
	for at < len(p) && err == nil {
		piece := c.out.cut(p[at:])
		if piece.kind == partial {
			break
		}
		keep := true
		switch piece.kind {
		case control:
			keep = c.serverControlLocked(piece.head, piece.bytes)
		case begin:
			err = c.serverFrameLocked(piece.head)
		}
		if !keep {
			kept = append(kept, p[from:at]...)
			from = at + len(piece.bytes)
		}
		at += len(piece.bytes)
	}
	c.refillLocked()
	if kept == nil {
		return p[from:at], p[at:], err
	}
	return append(kept, p[from:at]...), p[at:], err
}

// serverFrameLocked notes the head of a frame of the server.
func (c *conn) serverFrameLocked(h head) error {
	s := c.streams[h.stream]
	switch h.kind {
	case frameData:
		c.credit.server -= int64(h.length)
	case frameHeaders:
	default:
		return nil
	}
	if s == nil {
		return nil
	}
	if s.parked {
		return errInvalid
	}
	if h.kind == frameData {
		s.window -= int64(h.length)
	}
	if h.has(flagEndStream) {
		if s.serverDone = true; s.clientDone {
			c.closeLocked(s)
		}
	}
	return nil
}

// serverControlLocked looks at a control frame. It is false if the client must not see it.
func (c *conn) serverControlLocked(h head, frame []byte) (keep bool) {
	switch {
	case h.kind == frameSettings && h.has(flagAck):
		c.growLocked()
	case h.kind == frameSettings:
		settings(frame, func(id uint16, value uint32) {
			switch id {
			case settingMaxStreams:
				c.maxStreams = value
			case settingMaxFrame:
				c.maxFrame = int(value)
			}
		})
	case h.kind == framePing && h.has(flagAck) && h.length == 8:
		return !c.ackedLocked([8]byte(frame[headBytes:]))
	case h.kind == frameReset && h.length == 4:
		if s := c.streams[h.stream]; s != nil {
			c.closeLocked(s)
		}
	case h.kind == frameGoAway && h.length >= 8:
		c.leaving = true
		c.failed = c.failed || number(frame, 4) != 0
	}
	return true
}

// ackedLocked parks the stream that a PING stands for: the server has forgotten it, and all that it
// had sent of it is before the answer to the PING. It is false if the PING was the client's.
func (c *conn) ackedLocked(ping [8]byte) bool {
	s, ours := c.acks[ping]
	if !ours {
		return false
	}
	delete(c.acks, ping)
	close(s.acked)
	if !s.over {
		s.parked = true
		c.parked++
	}
	return true
}
