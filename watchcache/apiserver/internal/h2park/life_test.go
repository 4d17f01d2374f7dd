package h2park

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// TestParkedStreamsOutliveTheServer: after a graceful end of the server's part they go on, and
// keep the connection, which answers for itself.
func TestParkedStreamsOutliveTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		a, b, c := p.park(1), p.park(3), p.park(5)
		require.NoError(t, p.WriteGoAway(0, http2.ErrCodeNo, nil))
		require.Equal(t, []string{"GOAWAY NO_ERROR"}, p.frames())
		time.Sleep(2 * time.Second) // the server closes after one
		require.Empty(t, p.frames())
		require.NoError(t, a.stream.Write(text("more")))
		require.Equal(t, []string{"DATA 1 4"}, p.frames())
		require.NoError(t, p.WritePing(false, [8]byte([]byte("question"))))
		require.NoError(t, p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
		require.Equal(t, []string{"PING question", "SETTINGS 0"}, p.frames())
		p.ask(7, "/other")
		require.Empty(t, p.frames(), "the GOAWAY has said so")
		require.NoError(t, p.WriteData(3, true, nil))
		require.Equal(t, []string{"RST_STREAM 3 STREAM_CLOSED"}, p.frames())
		require.True(t, b.gone)
		require.NoError(t, p.WriteRSTStream(5, http2.ErrCodeCancel))
		synctest.Wait()
		require.True(t, c.gone)
		a.stream.End()
		require.Equal(t, []string{"DATA 1 0 end"}, p.frames())
		<-p.ended
		require.Equal(t, []string{"end"}, p.frames())
	})
}

// TestAnErrorEndsParkedStreams, also once the server has gone.
func TestAnErrorEndsParkedStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, p *peer) {
		asked := p.park(1)
		require.NoError(t, p.WriteGoAway(0, http2.ErrCodeNo, nil))
		time.Sleep(2 * time.Second)
		require.NoError(t, p.WriteWindowUpdate(0, maxWindow))
		<-p.ended
		require.True(t, asked.gone)
	})
}

// TestAConnectionWithParkedStreamsIsNotIdle, as it would not be if their handlers had stayed.
func TestAConnectionWithParkedStreamsIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{t: t, web: &http.Server{IdleTimeout: time.Minute}}
		p.connect(1 << 20)
		time.Sleep(50 * time.Second)
		asked := p.park(1)
		time.Sleep(time.Hour)
		require.Empty(t, p.frames())
		asked.stream.End()
		require.Equal(t, []string{"DATA 1 0 end"}, p.frames())
		time.Sleep(59 * time.Second)
		require.Empty(t, p.frames())
		time.Sleep(time.Second)
		require.Equal(t, []string{"GOAWAY NO_ERROR"}, p.frames())
		<-p.ended
	})
}

// TestAFrameThatStopsInTheMiddle keeps nobody from being answered, only from being parked: until it
// goes on, or there is something to send.
func TestAFrameThatStopsInTheMiddle(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		inBubble(t, func(t *testing.T, p *peer) {
			parked := p.park(1)
			p.gate, p.cancel = make(chan struct{}), make(chan struct{})
			p.ask(3, "/park")
			asked := p.last()
			require.NoError(t, p.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, EndHeaders: true, BlockFragment: block("POST", "/other")}))
			p.frames()
			_, err := p.client.Write([]byte{0, 0, 6, frameData, flagEndStream, 0, 0, 0, 5, 'h', 'a', 'l', 'f'})
			require.NoError(t, err)
			close(p.gate)
			require.NoError(t, parked.stream.Write(text("more")))
			require.Equal(t, []string{"DATA 1 4"}, p.frames())
			require.Nil(t, asked.stream, "it waits")
			if goesOn {
				_, err := p.client.Write([]byte("of"))
				require.NoError(t, err)
				p.frames()
				require.True(t, asked.parked)
			} else {
				close(p.cancel)
				require.Equal(t, []string{"DATA 3 10 end"}, p.frames())
			}
		})
	}
}
