package h2park

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// TestParkedStreamsKeepToTheirWindow, whether it grows by itself or with the windows of all streams.
func TestParkedStreamsKeepToTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, 1<<20, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 16})
		asked := p.park(1) // 6 of 16 are used
		sent := make(chan error, 1)
		go func() { sent <- asked.stream.Write(text(strings.Repeat("x", 100))) }()
		require.Equal(t, []string{"DATA 1 10"}, p.frames())
		require.NoError(t, p.WriteWindowUpdate(1, 7))
		require.Equal(t, []string{"DATA 1 7"}, p.frames())
		require.NoError(t, p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 20}))
		require.Equal(t, []string{"SETTINGS 0", "DATA 1 4"}, p.frames(), "after the acknowledgement")
		require.NoError(t, p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		require.NoError(t, p.WriteWindowUpdate(1, 20))
		require.Equal(t, []string{"SETTINGS 0"}, p.frames(), "it was 20 too many")
		require.NoError(t, p.WriteWindowUpdate(1, 1))
		require.Equal(t, []string{"DATA 1 1"}, p.frames())
		require.NoError(t, p.WriteWindowUpdate(1, 1000))
		require.Equal(t, []string{"DATA 1 78"}, p.frames())
		require.NoError(t, <-sent)
		p.over()
	})
}

// TestAStreamThatBeginsBeforeTheAcknowledgement has the window that its client has announced, once.
func TestAStreamThatBeginsBeforeTheAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, 1<<20, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 16})
		var both bytes.Buffer // in one write
		framer := http2.NewFramer(&both, nil)
		require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 20}))
		require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: 1, EndStream: true, EndHeaders: true, BlockFragment: block("GET", "/park"),
		}))
		_, err := p.client.Write(both.Bytes())
		require.NoError(t, err)
		require.Equal(t, []string{"SETTINGS 0", "HEADERS 1", "DATA 1 6"}, p.frames())
		require.Error(t, p.last().stream.Write(text(strings.Repeat("x", 100))))
		require.Equal(t, []string{"DATA 1 14"}, p.frames())
		p.over()
	})
}

// TestTheServerLeavesSomeCredit: a quarter of what the client has granted is the most that it gets,
// and half of what there is while parked streams wait.
func TestTheServerLeavesSomeCredit(t *testing.T) {
	c := newCredit()
	require.Zero(t, c.refill(false), "there is none")
	require.True(t, c.grant(1<<20-initialWindow))
	require.EqualValues(t, 256<<10-initialWindow, c.refill(false))
	require.Zero(t, c.refill(false))
	c.server -= 128 << 10
	require.Zero(t, c.refill(false), "it has half")
	c.server--
	c.pool = 1001
	require.EqualValues(t, 501, c.refill(true))
	require.EqualValues(t, 500, c.pool)
	require.False(t, c.grant(maxWindow))
	require.True(t, c.grant(maxWindow-c.server-c.pool))
	c.server = 0
	require.EqualValues(t, serverMost, c.refill(false))
}

// TestASlowClientLosesTheStream, not the connection, if only the windows are empty.
func TestASlowClientLosesTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, 1<<20, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 16})
		a, b := p.park(1), p.park(3)
		began := time.Now()
		require.Error(t, a.stream.Write(text(strings.Repeat("x", 100))))
		require.Equal(t, patience, time.Since(began))
		a.stream.Reset()
		require.Equal(t, []string{"DATA 1 10", "RST_STREAM 1 CANCEL"}, p.frames())
		require.NoError(t, b.stream.Write(text("x")))
		require.Equal(t, []string{"DATA 3 1"}, p.frames())
		p.over()
	})
}

// TestAClientThatTakesNothingLosesTheConnection, whoever writes to it.
func TestAClientThatTakesNothingLosesTheConnection(t *testing.T) {
	for _, who := range []string{"a parked stream", "the server", "the server in a frame"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, 1<<20)
				a, b := p.park(1), p.park(3)
				stop := make(chan struct{})
				defer close(stop)
				p.mu.Lock()
				p.noted = func(http2.Frame) { <-stop }
				p.mu.Unlock()
				require.NoError(t, p.WritePing(false, [8]byte{}))
				synctest.Wait() // that was the last frame that it has read
				began := time.Now()
				switch who {
				case "a parked stream":
					require.Error(t, a.stream.Write(text("x")))
				case "the server in a frame":
					p.ask(5, "/other?20000")
				default:
					require.NoError(t, p.WritePing(false, [8]byte{}))
				}
				synctest.Wait()
				require.Error(t, b.stream.Write(text("x")))
				require.InDelta(t, patience.Seconds(), time.Since(began).Seconds(), 0.1)
				<-p.ended
				require.True(t, b.gone)
			})
		})
	}
}

// reader is a client that grants again what it has read, when that is half of a window, and that
// counts what it is sent.
type reader struct {
	t            *testing.T
	p            *peer
	random       *rand.Rand
	mu           sync.Mutex // guards what follows
	window       int64      // of a stream
	connection   int64
	left         int64            // of the connection's window
	streams      map[uint32]int64 // what is left of theirs
	unread       []read
	notGranted   int64
	streamUnread map[uint32]int64
}

type read struct {
	stream uint32
	bytes  int64
}

// take checks a frame against the windows.
func (r *reader) take(f http2.Frame) {
	d, ok := f.(*http2.DataFrame)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(d.Length)
	if _, ok := r.streams[d.StreamID]; !ok {
		r.streams[d.StreamID] = r.window
	}
	r.left -= n
	r.streams[d.StreamID] -= n
	if r.left < 0 || r.streams[d.StreamID] < 0 {
		r.t.Errorf("stream %d has sent %d too many, %d of them for the connection", d.StreamID, -r.streams[d.StreamID], -r.left)
	}
	r.unread = append(r.unread, read{d.StreamID, n})
}

// run reads some of what has come, in any order, until done.
func (r *reader) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(r.random.IntN(1000)) * time.Microsecond):
		}
		var grants []read
		r.mu.Lock()
		r.random.Shuffle(len(r.unread), func(i, j int) { r.unread[i], r.unread[j] = r.unread[j], r.unread[i] })
		for some := r.random.IntN(len(r.unread) + 1); some > 0; some-- {
			one := r.unread[0]
			r.unread = r.unread[1:]
			r.notGranted += one.bytes
			r.streamUnread[one.stream] += one.bytes
			if n := r.streamUnread[one.stream]; n >= r.window/2 {
				grants = append(grants, read{one.stream, n})
				r.streams[one.stream] += n
				r.streamUnread[one.stream] = 0
			}
			if n := r.notGranted; n >= r.connection/2 {
				grants = append(grants, read{0, n})
				r.left += n
				r.notGranted = 0
			}
		}
		r.mu.Unlock()
		for _, g := range grants {
			r.p.framing.Lock()
			err := r.p.WriteWindowUpdate(g.stream, uint32(g.bytes))
			r.p.framing.Unlock()
			if err != nil {
				r.t.Error(err)
			}
		}
	}
}

// TestWindowsOfManyStreams: random amounts on parked streams and in ordinary answers all arrive,
// within the windows of a client that grants them late, and nobody waits for ever.
func TestWindowsOfManyStreams(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	for range rounds {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			t.Log("seed", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			window := int64([]int{1 << 12, initialWindow, 1 << 20}[random.IntN(3)])
			connection := int64(parkFrom) << random.IntN(4)
			p := newPeer(t, uint32(connection), http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(window)})
			r := &reader{
				t: t, p: p, random: rand.New(rand.NewPCG(seed, 1)), window: window, connection: connection, left: connection,
				streams: map[uint32]int64{}, streamUnread: map[uint32]int64{},
			}
			p.mu.Lock()
			p.noted = r.take
			p.mu.Unlock()
			done := make(chan struct{})
			var reading, writing sync.WaitGroup
			reading.Go(func() { r.run(done) })
			want := map[uint32]int{}
			id := uint32(1)
			for range 1 + random.IntN(20) { // ordinary answers and parked streams begin in between
				for range random.IntN(3) {
					n := random.IntN(1 << 20)
					p.ask(id, fmt.Sprint("/other?", n))
					want[id] = n + len("/other")
					id += 2
				}
				p.ask(id, "/park")
				asked := p.parkedAs(id)
				sizes := make([]int, 1+random.IntN(5))
				total := 0
				for i := range sizes {
					sizes[i] = random.IntN(1 << (1 + random.IntN(19)))
					total += sizes[i]
				}
				want[id] = len("begun ") + total
				writing.Go(func() {
					for _, size := range sizes {
						if err := asked.stream.Write([][]byte{make([]byte, size/2), make([]byte, size-size/2)}); err != nil {
							t.Error(err)
						}
					}
					asked.stream.End()
				})
				id += 2
			}
			writing.Wait()
			for all := false; !all; time.Sleep(time.Second) { // in the time of the bubble
				p.mu.Lock()
				all = true
				for id, n := range want {
					all = all && p.bodies[id] != nil && p.bodies[id].Len() >= n
				}
				p.mu.Unlock()
				require.Less(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), 10*time.Minute, "somebody waits for ever")
			}
			close(done)
			reading.Wait()
			for id, n := range want {
				require.Equal(t, n, p.bodies[id].Len())
			}
			p.over()
		})
	}
}
