package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/cert"
)

// Protobuf is the content type of Kubernetes objects in protobuf, and Watch that of their events.
const (
	Protobuf = "application/vnd.kubernetes.protobuf"
	Watch    = Protobuf + ";stream=watch"
)

// Serving is how a handler is served.
type Serving struct {
	TLS     bool
	Streams int     // of a connection at most; zero: the default
	Counts  *Counts // of the connections; nil: none
}

// Serve serves on loopback until the process ends: HTTP/1.1, and HTTP/2 with TLS or without.
func (s Serving) Serve(handler http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	if s.Counts != nil {
		listener = s.Counts.Of(listener)
	}
	web := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: s.Streams}}
	web.Protocols = &http.Protocols{}
	web.Protocols.SetHTTP1(true)
	web.Protocols.SetHTTP2(true)
	web.Protocols.SetUnencryptedHTTP2(!s.TLS)
	if !s.TLS {
		go func() { _ = web.Serve(listener) }()
		return "http://" + address, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return "", err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return "", err
	}
	web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	go func() { _ = web.ServeTLS(listener, "", "") }()
	return "https://" + address, nil
}

// Counts are those of the connections of a listener.
type Counts struct{ Open, All, Bytes atomic.Int64 } // open now, so far, and bytes written

// Of counts the connections that a listener accepts.
func (c *Counts) Of(l net.Listener) net.Listener { return counted{l, c} }

type counted struct {
	net.Listener
	counts *Counts
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.counts.Open.Add(1)
	c.counts.All.Add(1)
	return countedConn{conn, c.counts, sync.OnceFunc(func() { c.counts.Open.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	counts *Counts
	closed func()
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.Bytes.Add(int64(n))
	return n, err
}

// Client speaks one protocol. It believes any certificate: its server is on this machine.
func Client(http2 bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
	}}
}

// Get returns the body of an answer; headers are names and values by turns.
func Get(ctx context.Context, client *http.Client, url string, headers ...string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

var local = Client(false)

// Call asks a server of the harness, whose answer is JSON or nothing.
func Call[T any](ctx context.Context, url string) (answer T, err error) {
	body, err := Get(ctx, local, url)
	if err != nil {
		return answer, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		return answer, fmt.Errorf("%s: %w", url, err)
	}
	return answer, nil
}

// Do asks a server of the harness to do something.
func Do(ctx context.Context, url string) error {
	_, err := Call[any](ctx, url)
	return err
}

// Answer makes a handler of what a server of the harness does or tells.
func Answer(do func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// ReadFrames reads the frames of a watch in protobuf, each after its length, until it ends or each
// returns false.
func ReadFrames(body io.Reader, each func(frame []byte) bool) error {
	in := bufio.NewReaderSize(body, 64<<10)
	buffer := make([]byte, 64<<10)
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(length[:]))
		if n > len(buffer) {
			buffer = make([]byte, n)
		}
		if _, err := io.ReadFull(in, buffer[:n]); err != nil {
			return err
		}
		if !each(buffer[:n]) {
			return nil
		}
	}
}
