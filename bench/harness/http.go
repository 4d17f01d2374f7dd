package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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
func (s Serving) Serve(handler http.Handler) (url string) {
	listener := Must(net.Listen("tcp", "127.0.0.1:0"))
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
		return "http://" + address
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	Check(err)
	web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{Must(tls.X509KeyPair(certificate, key))}}
	go func() { _ = web.ServeTLS(listener, "", "") }()
	return "https://" + address
}

// Say serves, says the address to the parent, and that of the control if there is one, and returns
// when the input of this process ends.
func (s Serving) Say(ctx context.Context, handler, control http.Handler) {
	words := []any{s.Serve(handler)}
	if control != nil {
		words = append(words, Serving{}.Serve(control))
	}
	Say(ctx, words...)
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

// Config is that of a client of a server on this machine, in protobuf and without a limit of
// requests.
func Config(url string) *rest.Config {
	return &rest.Config{
		Host: url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: strings.HasPrefix(url, "https:")},
		ContentConfig: rest.ContentConfig{ContentType: Protobuf, AcceptContentTypes: Protobuf + ",application/json"},
	}
}

// RESTClient is client-go's client of a version of a group, with the types of its clientset.
func RESTClient(config *rest.Config, version schema.GroupVersion) rest.Interface {
	config.GroupVersion, config.NegotiatedSerializer, config.APIPath = &version, scheme.Codecs.WithoutConversion(), "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	return Must(rest.RESTClientFor(config))
}

// Get returns the body of an answer; headers are names and values by turns.
func Get(ctx context.Context, client *http.Client, url string, headers ...string) io.ReadCloser {
	r := Must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := Must(client.Do(r))
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		Fail("%s: %s: %s", url, answer.Status, Must(io.ReadAll(answer.Body)))
	}
	return answer.Body
}

// Discard reads the body of an answer, and returns its length.
func Discard(ctx context.Context, client *http.Client, url string, headers ...string) int64 {
	body := Get(ctx, client, url, headers...)
	defer body.Close()
	return Must(io.Copy(io.Discard, body))
}

var local = Client(false)

// Call asks a server of the harness, whose answer is JSON or nothing.
func Call[T any](ctx context.Context, url string) T { return CallBy[T](ctx, local, url) }

// CallBy is Call with a client.
func CallBy[T any](ctx context.Context, client *http.Client, url string) (answer T) {
	body := Get(ctx, client, url)
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		Fail("%s: %w", url, err)
	}
	return answer
}

// Do asks a server of the harness to do something.
func Do(ctx context.Context, url string) { Call[any](ctx, url) }

// answer makes a handler of what a server of the harness does or tells.
func answer(do func(r *http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var answer any
		if err := Try(func() { answer = do(r) }); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// Number is a number in the query of a request.
func Number(r *http.Request, name string) int { return Must(strconv.Atoi(r.FormValue(name))) }

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
