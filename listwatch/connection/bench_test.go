package connection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/connection"
)

// eventPace is the time between two events of a benchmark's watch.
const eventPace = 20 * time.Millisecond

// traffic is what a program sends and reads beside its watch.
type traffic struct {
	writers, body int           // writers that PUT bodies of so many bytes, each after the other
	lists, list   int           // readers of LISTs of so many bytes
	reading       time.Duration // pause of such a reader after each 64 KiB
}

// BenchmarkEventsBehindWrites measures how late events come while the program writes and lists:
// over the connection of the writes, and over one of the watch's own. docs/design/listwatch.md has
// its figures.
//
// A link is a proxy whose connections share its rate by turns, with 10 ms in each direction.
func BenchmarkEventsBehindWrites(b *testing.B) {
	for _, load := range []struct {
		name string
		link int // megabits per second in each direction; 0 is the loopback itself
		traffic
	}{
		{"idle/loopback", 0, traffic{}},
		{"64 PUTs of 16 KB/loopback", 0, traffic{writers: 64, body: 16 << 10}},
		{"64 PUTs of 1 MB/loopback", 0, traffic{writers: 64, body: 1 << 20}},
		{"400 PUTs of 4 KB/loopback", 0, traffic{writers: 400, body: 4 << 10}},
		{"4 LISTs of 20 MB/loopback", 0, traffic{lists: 4, list: 20 << 20}},
		{"4 LISTs read slowly/loopback", 0, traffic{lists: 4, list: 20 << 20, reading: 100 * time.Millisecond}},
		{"idle/100 Mbit", 100, traffic{}},
		{"64 PUTs of 16 KB/100 Mbit", 100, traffic{writers: 64, body: 16 << 10}},
		{"64 PUTs of 1 MB/100 Mbit", 100, traffic{writers: 64, body: 1 << 20}},
		{"4 LISTs of 20 MB/100 Mbit", 100, traffic{lists: 4, list: 20 << 20}},
		{"64 PUTs of 16 KB/20 Mbit", 20, traffic{writers: 64, body: 16 << 10}},
		{"4 PUTs of 1 MB/20 Mbit", 20, traffic{writers: 4, body: 1 << 20}},
		{"64 PUTs of 1 MB/20 Mbit", 20, traffic{writers: 64, body: 1 << 20}},
		{"4 LISTs of 20 MB/20 Mbit", 20, traffic{lists: 4, list: 20 << 20}},
	} {
		for _, side := range []struct {
			name string
			of   func(*rest.Config) *rest.Config
		}{{"shared", rest.CopyConfig}, {"separate", connection.Separate}} {
			b.Run(load.name+"/"+side.name, func(b *testing.B) {
				server := serveHTTP2(b, answerLate)
				config := server.config
				if load.link > 0 {
					config.Host = "https://" + slow(b, server.Listener.Addr().String(), load.link)
				}
				answers := load.begin(b, config)
				answers.Store(0)
				began := time.Now()
				first, late := eventsLate(b, side.of(config), b.N)
				b.ReportMetric(float64(first)/1e6, "first-ms")
				slices.Sort(late)
				for name, part := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "max-ms": 1} {
					b.ReportMetric(float64(late[int(part*float64(len(late)-1))])/1e6, name)
				}
				b.ReportMetric(float64(answers.Load())/time.Since(began).Seconds(), "others/s")
			})
		}
	}
}

// eventsLate reads n events, and returns how much later than due each came. The first comes in so
// long after the request, and is none of the others.
func eventsLate(b *testing.B, config *rest.Config, n int) (first time.Duration, late []time.Duration) {
	lw := listwatch.FromClient[corev1.Pod](restClient(b, config), "pods")
	requested := time.Now()
	for event, err := range lw.Watch(b.Context(), metav1.ListOptions{}) {
		require.NoError(b, err)
		due, err := strconv.ParseInt(event.ResourceVersion, 10, 64)
		require.NoError(b, err)
		if first == 0 {
			first = time.Since(requested)
			b.ResetTimer()
			continue
		}
		if late = append(late, time.Since(clock.Add(time.Duration(due)))); len(late) == n {
			break
		}
	}
	require.Len(b, late, n)
	return first, late
}

// clock is the zero of the times that events have in place of a resource version.
var clock = time.Now()

// answerLate answers a watch by an event at each eventPace, a LIST by as many bytes as its limit
// says, and a PUT by its body.
func answerLate(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	case r.URL.Query().Get("watch") != "true":
		size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		for piece := make([]byte, 32<<10); size > 0; size -= len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	default:
		note := strings.Repeat("x", 1<<10)
		for due := time.Since(clock); ; due += eventPace {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(due - time.Since(clock)):
			}
			fmt.Fprintf(w, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop",`+
				`"name":"web","uid":"1","resourceVersion":"%d","annotations":{"note":"%s"}}}}`+"\n", due, note)
			w.(http.Flusher).Flush()
		}
	}
}

// begin sends the traffic until the end of the test, and counts its answers. The sleeps of this
// file are real, since its sockets are: they are the pace of a reader, and of a link.
func (l traffic) begin(b *testing.B, config *rest.Config) (answers *atomic.Int64) {
	answers = &atomic.Int64{}
	client := restClient(b, config)
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	b.Cleanup(func() { stop(); running.Wait() })
	body := bytes.Repeat([]byte("x"), l.body)
	for range l.writers {
		running.Go(func() {
			for ctx.Err() == nil {
				put := client.Put().Resource("pods").Namespace("shop").Name("web").Body(body)
				if put.Do(ctx).Error() == nil {
					answers.Add(1)
				}
			}
		})
	}
	for range l.lists {
		running.Go(func() {
			for ctx.Err() == nil {
				answer, err := client.Get().Resource("pods").Param("limit", strconv.Itoa(l.list)).Stream(ctx)
				if err != nil {
					continue
				}
				for err == nil {
					_, err = io.CopyN(io.Discard, answer, 64<<10)
					if l.reading > 0 {
						time.Sleep(l.reading)
					}
				}
				_ = answer.Close()
				answers.Add(1)
			}
		})
	}
	time.Sleep(time.Second) // the traffic fills its buffers
	return answers
}

// slow is the address of a proxy whose connections share a link by turns.
func slow(t testing.TB, upstream string, megabits int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	up, down := &direction{rate: megabits * 1e6 / 8}, &direction{rate: megabits * 1e6 / 8}
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			running.Go(func() { <-stop; _ = errors.Join(client.Close(), server.Close()) })
			running.Go(func() { up.carry(server, client) })
			running.Go(func() { down.carry(client, server) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); close(stop); running.Wait() })
	return listener.Addr().String()
}

// direction is one direction of a link: its rate in bytes per second, and when it is free again.
type direction struct {
	rate int
	mu   sync.Mutex
	free time.Time
}

// carry moves the bytes of a connection until either end closes, and closes both then.
func (d *direction) carry(to, from net.Conn) {
	type packet struct {
		data []byte
		due  time.Time
	}
	onWay := make(chan packet, 256)
	go func() {
		defer close(onWay)
		for {
			data := make([]byte, 4<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			d.mu.Lock()
			if now := time.Now(); d.free.Before(now) {
				d.free = now
			}
			d.free = d.free.Add(time.Duration(n) * time.Second / time.Duration(d.rate))
			free := d.free
			d.mu.Unlock()
			time.Sleep(time.Until(free))
			onWay <- packet{data[:n], free.Add(10 * time.Millisecond)}
		}
	}()
	for p := range onWay {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = errors.Join(from.Close(), to.Close())
	for range onWay {
	}
}
