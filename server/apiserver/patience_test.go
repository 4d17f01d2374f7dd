package apiserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// pipes is a listener whose connections are in memory, so that a real http.Server runs on the clock
// of a test.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	writes   *atomic.Int32 // of the server
}

func newPipes() pipes { return pipes{make(chan net.Conn), make(chan struct{}), new(atomic.Int32)} }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accepted <- counting{server, p.writes}
	return client
}

// counting is a connection that counts what are system calls of a real one.
type counting struct {
	net.Conn
	writes *atomic.Int32
}

func (c counting) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// piped is a server with a fat list behind pipes.
type piped struct {
	pipes
	running atomic.Int32 // requests
	pods    *collection.Collection[*corev1.Pod]
	server  *apiserver.Server
}

// overPipes runs a test with a server of 20 pods of 64 KB, in simulated time.
func overPipes(t *testing.T, http2 bool, test func(*testing.T, *piped)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		p := &piped{pipes: newPipes(), server: s, pods: apiserver.Serve(s, builtin.Pods())}
		for i := range 20 {
			fat := pod(fmt.Sprint("fat-", i))
			for part := range 1 << 10 { // which compresses badly enough
				fat.Spec.Containers[0].Args = append(fat.Spec.Containers[0].Args, fmt.Sprintf("%016x%048d", int64(part)*0x9e3779b97f4a7c, i))
			}
			_, err := p.pods.Create(fat)
			require.NoError(t, err)
		}
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.running.Add(1)
			defer p.running.Add(-1)
			s.ServeHTTP(w, r)
		})}
		if http2 {
			web.Protocols = &http.Protocols{}
			web.Protocols.SetUnencryptedHTTP2(true)
			web.HTTP2 = &http.HTTP2Config{WriteByteTimeout: 30 * time.Second}
		}
		served := make(chan error, 1)
		go func() { served <- web.Serve(p.pipes) }()
		test(t, p)
		s.Close()
		require.NoError(t, web.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// requireCut: a request in flight ends after 30 seconds, or after most, and not before.
func (p *piped) requireCut(t *testing.T, most time.Duration) {
	t.Helper()
	synctest.Wait()
	require.EqualValues(t, 1, p.running.Load())
	time.Sleep(29 * time.Second)
	synctest.Wait()
	require.EqualValues(t, 1, p.running.Load())
	time.Sleep(most - 28*time.Second)
	synctest.Wait()
	require.Zero(t, p.running.Load())
}

// unread is how many watches are counted as those of clients that do not read.
func (p *piped) unread() (count float64) {
	for s := range p.server.Samples("edge") {
		if s.Metric.Name == "tributary_watch_cache_cut_watchers_total" && s.Labels[3] == "unread" {
			count += s.Value
		}
	}
	return count
}

var answersOfObjects = map[string]struct{ path, header string }{
	"list in JSON":     {"/api/v1/pods", "Accept: " + wireJSON},
	"list in protobuf": {"/api/v1/pods", "Accept: " + wireProtobuf},
	"compressed list":  {"/api/v1/pods", "Accept-Encoding: gzip"},
	"page":             {"/api/v1/pods?limit=3", "Accept: " + wireProtobuf},
	"table":            {"/api/v1/pods?includeObject=Object", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"},
	"object":           {"/api/v1/namespaces/ns/pods/fat-1", "Accept: " + wireJSON},
	"watch":            {"/api/v1/pods?watch=1", "Accept: " + wireJSON},
	"head of a watch":  {"/api/v1/pods?watch=1", "Accept: " + wireJSON},
}

// TestAnAnswerEndsWithAClientThatDoesNotRead for 30 seconds, of whatever kind it is.
func TestAnAnswerEndsWithAClientThatDoesNotRead(t *testing.T) {
	for name, c := range answersOfObjects {
		t.Run(name, func(t *testing.T) {
			overPipes(t, false, func(t *testing.T, p *piped) {
				client := p.dial()
				defer client.Close()
				_, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", c.path, c.header)
				require.NoError(t, err)
				taken := 1 << 10
				if name == "head of a watch" {
					taken = 10
				}
				_, err = io.ReadFull(client, make([]byte, taken))
				require.NoError(t, err)
				p.requireCut(t, 30*time.Second)
				_, err = io.ReadAll(client)
				require.NoError(t, err, "the connection is closed")
				if strings.HasSuffix(name, "watch") {
					require.EqualValues(t, 1, p.unread())
				} else {
					require.Zero(t, p.unread())
				}
			})
		})
	}
}

// TestASlowReaderGetsAllOfItsAnswer, which takes minutes: the 30 seconds are for each piece.
func TestASlowReaderGetsAllOfItsAnswer(t *testing.T) {
	for name, c := range answersOfObjects {
		if strings.HasSuffix(name, "watch") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			overPipes(t, false, func(t *testing.T, p *piped) {
				client := p.dial()
				defer client.Close()
				began := time.Now()
				_, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n", c.path, c.header)
				require.NoError(t, err)
				answer, err := http.ReadResponse(bufio.NewReaderSize(slowly{client}, 1<<10), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.Greater(t, len(body), 64<<10)
				require.Greater(t, time.Since(began), time.Minute*8/10)
			})
		})
	}
}

// slowly reads 1.25 KB a second.
type slowly struct{ net.Conn }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(800 * time.Millisecond)
	return s.Conn.Read(p[:min(len(p), 1<<10)])
}

// TestAStreamEndsWithAClientThatDoesNotRead: it grants no window, or takes nothing of the whole
// connection.
func TestAStreamEndsWithAClientThatDoesNotRead(t *testing.T) {
	for kind, window := range map[string]uint32{"no window": 1 << 10, "nothing taken": 1 << 30} {
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/ns/pods/fat-1", "/api/v1/pods?watch=1"} {
			t.Run(kind+", "+path, func(t *testing.T) {
				overPipes(t, true, func(t *testing.T, p *piped) {
					client := p.dial()
					defer client.Close()
					if window == 1<<10 {
						go func() { _, _ = io.Copy(io.Discard, client) }()
					}
					askHTTP2(t, beginHTTP2(t, client, window), 1, path)
					if window == 1<<30 {
						_, err := io.ReadFull(client, make([]byte, 2<<10))
						require.NoError(t, err)
					}
					// The write that took the last byte has its time first.
					p.requireCut(t, 60*time.Second)
					require.EqualValues(t, strings.Count(path, "watch"), p.unread())
				})
			})
		}
	}
}

// TestAReaderOfAByteASecondIsCut: it takes something all the time, and too little of each piece.
func TestAReaderOfAByteASecondIsCut(t *testing.T) {
	ask := map[string]func(*testing.T, net.Conn, string){
		"HTTP/1.1": func(t *testing.T, client net.Conn, path string) {
			_, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			require.NoError(t, err)
		},
		"HTTP/2": func(t *testing.T, client net.Conn, path string) {
			askHTTP2(t, beginHTTP2(t, client, 1<<30), 1, path)
		},
	}
	for protocol, ask := range ask {
		for _, path := range []string{"/api/v1/pods", "/api/v1/pods?watch=1"} {
			t.Run(protocol+", "+path, func(t *testing.T) {
				overPipes(t, protocol == "HTTP/2", func(t *testing.T, p *piped) {
					client := p.dial()
					ask(t, client, path)
					read := make(chan struct{})
					go func() {
						defer close(read)
						for {
							if _, err := client.Read(make([]byte, 1)); err != nil {
								return
							}
							time.Sleep(time.Second)
						}
					}()
					p.requireCut(t, 60*time.Second)
					require.EqualValues(t, strings.Count(path, "watch"), p.unread())
					require.NoError(t, client.Close())
					<-read
				})
			})
		}
	}
}

// TestABurstIsFewSystemCalls: net/http fills its buffer of 4 KB first, and the end of a chunk waits
// in the buffer behind what was too large for it.
func TestABurstIsFewSystemCalls(t *testing.T) {
	for want, args := range map[int32]int{1: 1, 2: 80, 3: 300} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			overPipes(t, false, func(t *testing.T, p *piped) {
				client := p.dial()
				defer client.Close()
				received := make(chan struct{})
				var sent atomic.Int64
				go func() {
					defer close(received)
					buffer := make([]byte, 64<<10)
					for {
						n, err := client.Read(buffer)
						if sent.Add(int64(n)); err != nil {
							return
						}
					}
				}()
				_, err := io.WriteString(client, "GET /api/v1/pods?watch=1&resourceVersion=21 HTTP/1.1\r\nHost: localhost\r\n\r\n")
				require.NoError(t, err)
				synctest.Wait()
				before, bytes := p.writes.Load(), sent.Load()
				burst := pod("burst")
				for i := range args {
					burst.Spec.Containers[0].Args = append(burst.Spec.Containers[0].Args, fmt.Sprintf("%048d", i))
				}
				_, err = p.pods.Create(burst)
				require.NoError(t, err)
				synctest.Wait()
				t.Logf("%d bytes in %d writes", sent.Load()-bytes, p.writes.Load()-before)
				require.Equal(t, want, p.writes.Load()-before)
				require.Greater(t, sent.Load()-bytes, int64(want-1)<<12)
				require.NoError(t, client.Close())
				<-received
			})
		})
	}
}
