package h2park

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const patience = 30 * time.Second

// peer is a client that speaks frames, over a connection in memory, with a real server at its other
// end. It is for a bubble of synctest.
type peer struct {
	*http2.Framer
	t      *testing.T
	web    *http.Server
	client net.Conn
	ended  chan struct{} // closed when the server's goroutine has

	framing sync.Mutex // held while frames are written, where several goroutines do

	mu       sync.Mutex // guards what follows
	got      []string   // frames, in short
	bodies   map[uint32]*bytes.Buffer
	requests []*request
	noted    func(http2.Frame)
	gate     chan struct{} // closed to have handlers park
	cancel   chan struct{}
}

// request is one that a handler has tried to park.
type request struct {
	*http.Request
	stream *Stream // nil: it cannot be
	parked bool
	gone   bool // the client has
}

// newPeer connects a client. Its first SETTINGS are sent, and a window for the connection.
func newPeer(t *testing.T, window uint32, first ...http2.Setting) *peer {
	p := &peer{t: t, web: &http.Server{ErrorLog: log.New(io.Discard, "", 0)}}
	return p.connect(window, first...)
}

func (p *peer) connect(window uint32, first ...http2.Setting) *peer {
	t := p.t
	p.web.Handler = http.HandlerFunc(p.serve)
	require.NoError(t, Configure(p.web, patience))
	server := &http2.Server{IdleTimeout: -1, MaxReadFrameSize: initialFrame}
	p.bodies, p.ended = map[uint32]*bytes.Buffer{}, make(chan struct{})
	require.NoError(t, http2.ConfigureServer(p.web, server))
	client, connection := net.Pipe()
	p.client = client
	c := newConn(connection, options{patience: patience, idle: p.web.IdleTimeout})
	go func() {
		defer close(p.ended)
		c.serve(server, c, &http2.ServeConnOpts{BaseConfig: p.web, Handler: p.web.Handler})
	}()
	go p.read()
	_, err := client.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	p.Framer = http2.NewFramer(client, client)
	require.NoError(t, p.WriteSettings(first...))
	if window > initialWindow {
		require.NoError(t, p.WriteWindowUpdate(0, window-initialWindow))
	}
	synctest.Wait()
	require.NoError(t, p.WriteSettingsAck())
	synctest.Wait()
	p.frames()
	t.Cleanup(func() { _ = client.Close() })
	return p
}

// serve answers each request with its path, after as many bytes as its query says, and parks /park.
func (p *peer) serve(w http.ResponseWriter, r *http.Request) {
	asked := &request{Request: r}
	p.mu.Lock()
	p.requests = append(p.requests, asked)
	p.mu.Unlock()
	if r.URL.Path != "/park" {
		long, _ := strconv.ParseInt(r.URL.RawQuery, 10, 64)
		_, _ = io.Copy(w, io.LimitReader(endless{}, long))
		_, _ = io.WriteString(w, r.URL.Path)
		return
	}
	_, _ = io.WriteString(w, "begun ")
	_ = http.NewResponseController(w).Flush()
	if p.gate != nil {
		<-p.gate
	}
	s := Of(w, r)
	parked := s != nil && s.Park(p.cancel, func() { asked.gone = true })
	p.mu.Lock()
	asked.stream, asked.parked = s, parked
	p.mu.Unlock()
	if !parked {
		_, _ = io.WriteString(w, "not parked")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// read notes what comes, until the connection ends.
func (p *peer) read() {
	framer := http2.NewFramer(nil, p.client)
	framer.SetMaxReadFrameSize(1 << 20)
	for {
		f, err := framer.ReadFrame()
		p.mu.Lock()
		note := p.noted
		switch f := f.(type) {
		case nil:
			p.got = append(p.got, "end")
		case *http2.DataFrame:
			body := p.bodies[f.StreamID]
			if body == nil {
				body = &bytes.Buffer{}
				p.bodies[f.StreamID] = body
			}
			body.Write(f.Data())
			p.got = append(p.got, fmt.Sprintf("DATA %d %d%s", f.StreamID, len(f.Data()), map[bool]string{true: " end"}[f.StreamEnded()]))
		case *http2.RSTStreamFrame:
			p.got = append(p.got, fmt.Sprintf("RST_STREAM %d %v", f.StreamID, f.ErrCode))
		case *http2.GoAwayFrame:
			p.got = append(p.got, fmt.Sprintf("GOAWAY %v", f.ErrCode))
		case *http2.PingFrame:
			p.got = append(p.got, fmt.Sprintf("PING %s", f.Data[:]))
		default:
			p.got = append(p.got, fmt.Sprintf("%v %d", f.Header().Type, f.Header().StreamID))
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
		if note != nil {
			note(f)
		}
	}
}

// frames are those that have come since the last time.
func (p *peer) frames() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// ask sends a request without a body.
func (p *peer) ask(id uint32, path string, more ...hpack.HeaderField) {
	p.framing.Lock()
	defer p.framing.Unlock()
	require.NoError(p.t, p.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, EndStream: true, EndHeaders: true, BlockFragment: block("GET", path, more...),
	}))
}

// block is an encoded header.
func block(method, path string, more ...hpack.HeaderField) []byte {
	var b bytes.Buffer
	encoder := hpack.NewEncoder(&b)
	for _, f := range append([]hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"},
		{Name: ":authority", Value: "x"}, {Name: ":path", Value: path},
	}, more...) {
		_ = encoder.WriteField(f) // a bytes.Buffer takes everything
	}
	return b.Bytes()
}

// park begins a stream, and waits until it is parked.
func (p *peer) park(id uint32) *request {
	p.ask(id, "/park")
	asked := p.last()
	require.True(p.t, asked.parked)
	require.Equal(p.t, []string{fmt.Sprint("HEADERS ", id), fmt.Sprintf("DATA %d 6", id)}, p.frames())
	return asked
}

func (p *peer) last() *request {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotEmpty(p.t, p.requests)
	return p.requests[len(p.requests)-1]
}

// parkedAs waits until a stream is parked, on the clock of the bubble.
func (p *peer) parkedAs(id uint32) *request {
	for {
		p.mu.Lock()
		for _, asked := range p.requests {
			if asked.stream != nil && asked.stream.id == id {
				defer p.mu.Unlock()
				require.True(p.t, asked.parked)
				return asked
			}
		}
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// over closes the connection, and waits for the server to be done with it.
func (p *peer) over() {
	require.NoError(p.t, p.client.Close())
	<-p.ended
	synctest.Wait()
}

// text is a frame of an answer.
func text(s string) [][]byte { return [][]byte{[]byte(s)} }
