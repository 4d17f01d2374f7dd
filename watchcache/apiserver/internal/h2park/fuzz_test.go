package h2park

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// sample is what a client may send after its preface.
func sample() []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 99}) // a bytes.Buffer takes everything
	_ = f.WriteWindowUpdate(0, 1<<20)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: block("GET", "/park")})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndStream: true, BlockFragment: block("GET", "/park")[:9]})
	_ = f.WriteContinuation(3, true, block("GET", "/park")[9:])
	_ = f.WriteDataPadded(3, true, []byte("data"), []byte("padding"))
	_ = f.WritePing(false, [8]byte{1})
	_ = f.WriteRSTStream(3, http2.ErrCodeCancel)
	_ = f.WriteGoAway(0, http2.ErrCodeNo, []byte("bye"))
	return b.Bytes()
}

// none is a connection that is never used.
type none struct{ net.Conn }

// FuzzFrames: whatever comes, in whatever pieces, means the same, and what the server has not to be
// spared goes through as it came.
func FuzzFrames(f *testing.F) {
	f.Add(sample(), uint8(3))
	f.Add(sample()[:40], uint8(1))
	f.Add([]byte("no frames at all, but more than nine bytes"), uint8(7))
	f.Fuzz(func(t *testing.T, sent []byte, step uint8) {
		both := func(step int) (in, out []byte) {
			receiver := newConn(none{}, options{sawPreface: true})
			receiver.secret = "secret"
			sender := newConn(none{}, options{})
			var pending []byte
			var rest []byte
			for at := 0; at < len(sent); at += step {
				part := sent[at:min(at+step, len(sent))]
				pending = append(pending, part...)
				pending = pending[receiver.receiveLocked(pending):]
				require.LessOrEqual(t, len(pending), headBytes+longestControl)
				var pass []byte
				pass, rest, _ = sender.sendLocked(append(rest[:len(rest):len(rest)], part...))
				out = append(out, pass...)
				require.LessOrEqual(t, len(rest), headBytes+longestControl)
			}
			require.Equal(t, string(sent), string(out)+string(rest), "a server's frames, of which none is to be kept back")
			for _, c := range []*conn{receiver, sender} {
				require.GreaterOrEqual(t, c.credit.pool, int64(0))
			}
			return receiver.pipe, out
		}
		in, out := both(max(1, len(sent)))
		inPieces, outPieces := both(int(step) + 1)
		require.Equal(t, out, outPieces)
		require.Equal(t, in, inPieces)
	})
}

// FuzzClient sends anything to a server, which is done with it when the client has gone.
func FuzzClient(f *testing.F) {
	f.Add(sample())
	f.Add(bytes.Repeat(sample(), 3))
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := &peer{t: t, web: &http.Server{ErrorLog: log.New(io.Discard, "", 0)}}
		client, connection := net.Pipe()
		c := newConn(connection, options{patience: patience})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.serve(&http2.Server{}, c, &http2.ServeConnOpts{BaseConfig: p.web, Handler: http.HandlerFunc(p.serve)})
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		_ = client.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err := client.Write(append([]byte(http2.ClientPreface), sent...))
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, client.Close())
		<-ended
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Empty(t, c.streams)
		require.Zero(t, c.parked)
	})
}
