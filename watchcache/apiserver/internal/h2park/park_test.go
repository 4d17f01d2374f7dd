package h2park

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// inBubble runs a test over a peer with a large window.
func inBubble(t *testing.T, test func(t *testing.T, p *peer)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, 1<<20)
		test(t, p)
		p.over()
	})
}

// TestAParkedStreamGoesOn: its handler has returned, and the answer goes on and ends.
func TestAParkedStreamGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		asked := p.park(1)
		require.Error(t, asked.Context().Err(), "the handler has returned")
		require.NoError(t, asked.stream.Write([][]byte{[]byte("more"), {}, []byte(" and more")}))
		asked.stream.End()
		require.Equal(t, []string{"DATA 1 13", "DATA 1 0 end"}, p.frames())
		require.Equal(t, "begun more and more", p.bodies[1].String())
		require.False(t, asked.gone)
		require.Error(t, asked.stream.Write(text("late")))
		asked.stream.Reset()
		require.Empty(t, p.frames())
	})
}

// TestAParkedStreamIsReset if its answer is not whole.
func TestAParkedStreamIsReset(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		p.park(1).stream.Reset()
		require.Equal(t, []string{"RST_STREAM 1 CANCEL"}, p.frames())
	})
}

// TestTheClientEndsParkedStreams: one, or all with the connection.
func TestTheClientEndsParkedStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		a, b := p.park(1), p.park(3)
		require.NoError(t, p.WriteRSTStream(1, http2.ErrCodeCancel))
		synctest.Wait()
		require.True(t, a.gone)
		require.False(t, b.gone)
		require.Error(t, a.stream.Write(text("more")))
		require.NoError(t, p.client.Close())
		<-p.ended
		synctest.Wait()
		require.True(t, b.gone)
		require.Error(t, b.stream.Write(text("more")))
	})
}

// TestOtherRequestsGoOn beside a parked stream.
func TestOtherRequestsGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		asked := p.park(1)
		p.ask(3, "/other")
		require.Equal(t, []string{"HEADERS 3", "DATA 3 6 end"}, p.frames())
		require.NoError(t, p.WritePing(false, [8]byte([]byte("question"))))
		require.Equal(t, []string{"PING question"}, p.frames())
		require.NoError(t, asked.stream.Write(text("more")))
		require.Equal(t, []string{"DATA 1 4"}, p.frames())
	})
}

// TestWhatIsSentOnAParkedStreamIsAnError, as on a stream that is closed.
func TestWhatIsSentOnAParkedStreamIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		send func(p *peer) error
		want string
	}{
		"DATA":          {func(p *peer) error { return p.WriteData(1, false, []byte("x")) }, "RST_STREAM 1 STREAM_CLOSED"},
		"WINDOW_UPDATE": {func(p *peer) error { return p.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4)) }, "RST_STREAM 1 PROTOCOL_ERROR"},
		"HEADERS": {func(p *peer) error {
			return p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: block("GET", "/")})
		}, "GOAWAY PROTOCOL_ERROR"},
		"too much":                    {func(p *peer) error { return p.WriteWindowUpdate(1, maxWindow) }, "RST_STREAM 1 FLOW_CONTROL_ERROR"},
		"too much for the connection": {func(p *peer) error { return p.WriteWindowUpdate(0, maxWindow) }, "GOAWAY FLOW_CONTROL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *peer) {
				asked := p.park(1)
				require.NoError(t, c.send(p))
				require.Contains(t, p.frames(), c.want)
				time.Sleep(2 * time.Second) // in which a server that has said GOAWAY closes
				synctest.Wait()
				require.True(t, asked.gone)
				require.Error(t, asked.stream.Write(text("more")))
			})
		})
	}
}

// TestTheLimitOfStreamsHolds, though the server has forgotten those that are parked.
func TestTheLimitOfStreamsHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, web: &http.Server{HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 2}}}
		p.connect(1 << 20)
		a := p.park(1)
		p.park(3)
		p.ask(5, "/other")
		p.ask(7, "/other", hpack.HeaderField{Name: "a", Value: "b"})
		require.Equal(t, []string{"RST_STREAM 5 PROTOCOL_ERROR", "RST_STREAM 7 PROTOCOL_ERROR"}, p.frames())
		require.Len(t, p.requests, 2, "no handler has seen them")
		a.stream.End()
		p.frames()
		p.ask(9, "/other")
		require.Equal(t, []string{"HEADERS 9", "DATA 9 6 end"}, p.frames())
		p.park(11)
		require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 13, EndStream: true, EndHeaders: true, PadLength: 9, BlockFragment: block("GET", "/other"),
		}))
		require.Contains(t, p.frames(), "GOAWAY PROTOCOL_ERROR", "padding leaves no other way")
		p.over()
	})
}

// TestWhatCannotBeParked stays with its handler.
func TestWhatCannotBeParked(t *testing.T) {
	t.Run("a small window", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t, parkFrom-1)
			p.ask(1, "/park")
			require.Equal(t, "begun not parked", p.answer(1))
			p.over()
		})
	})
	inBubble(t, func(t *testing.T, p *peer) {
		require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: block("POST", "/park")}))
		require.NoError(t, p.WriteData(1, true, nil))
		require.Equal(t, "begun not parked", p.answer(1), "a request with a body")

		require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndStream: true, EndHeaders: true, PadLength: 9, BlockFragment: block("GET", "/park")}))
		require.Equal(t, "begun not parked", p.answer(3), "padding")
	})
}

// answer is the body of an answer that is whole.
func (p *peer) answer(id uint32) string {
	p.frames()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotNil(p.t, p.bodies[id])
	return p.bodies[id].String()
}

// TestAHeaderMayTakeManyFrames, and its request is parked if the last of them has room.
func TestAHeaderMayTakeManyFrames(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		b := block("GET", "/park", hpack.HeaderField{Name: "long", Value: strings.Repeat("~", 20_000)})
		for i, last := range []int{0, 10, initialFrame} {
			id := uint32(2*i + 1)
			first, middle := b[:1000], b[1000:len(b)-last]
			require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: true, BlockFragment: first}))
			for len(middle) > 0 {
				n := min(len(middle), initialFrame)
				require.NoError(t, p.WriteContinuation(id, false, middle[:n]))
				middle = middle[n:]
			}
			require.NoError(t, p.WriteContinuation(id, true, b[len(b)-last:]))
			asked := p.last()
			require.Len(t, p.requests, i+1)
			require.Equal(t, last < initialFrame, asked.parked, last)
			require.Len(t, asked.Header["Long"][0], 20_000)
			require.NotContains(t, asked.Header, fieldKey)
		}
	})
}

// TestAClientCannotNameAStream: a field of its own is taken away, and means nothing.
func TestAClientCannotNameAStream(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		p.park(1)
		for i, value := range []string{"1", "", "0123456789abcdef012345671"} {
			p.ask(uint32(2*i+3), "/other", hpack.HeaderField{Name: fieldName, Value: value})
			require.NotContains(t, p.last().Header, fieldKey)
		}
		require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 9, EndHeaders: true, BlockFragment: block("POST", "/park", hpack.HeaderField{Name: fieldName, Value: "1"}),
		}))
		require.NoError(t, p.WriteData(9, true, nil))
		require.Equal(t, "begun not parked", p.answer(9))
	})
}
