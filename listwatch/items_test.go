package listwatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
)

// gatedEncoding decodes a pod whose name is the data up to a zero, after a call of enter.
type gatedEncoding struct {
	encoding[*corev1.Pod]
	enter func(name string)
}

func (g gatedEncoding) object(data []byte, _ schema.GroupVersionKind, _ sharing.Last) (*corev1.Pod, sharing.Notes, error) {
	name, _, _ := bytes.Cut(data, []byte{0})
	g.enter(string(name))
	p := &corev1.Pod{}
	p.Name = string(name)
	return p, nil, nil
}

func numbered(i, size int) []byte { return append(fmt.Append(nil, i), make([]byte, size)...) }

// gatedItems returns items over a body that ends at once.
func gatedItems(enter func(string), yield func(*corev1.Pod, error) bool) *items[*corev1.Pod] {
	l := newItems(newDecoder[corev1.Pod](), io.NopCloser(bytes.NewReader(nil)), yield)
	l.encoding = gatedEncoding{enter: enter}
	return l
}

func TestBatchesOfAListAreDecodedTogetherAndDeliveredInOrder(t *testing.T) {
	manyCores(t)
	synctest.Test(t, func(t *testing.T) { // fewer goroutines than cores would be a deadlock
		var mu sync.Mutex
		met := sync.NewCond(&mu)
		inside := 0
		var got []string
		l := gatedItems(func(string) {
			mu.Lock()
			defer mu.Unlock()
			inside++
			met.Broadcast()
			for inside < maxDecode {
				met.Wait()
			}
		}, func(p *corev1.Pod, err error) bool {
			require.NoError(t, err)
			got = append(got, p.Name)
			return true
		})
		defer l.stop()
		for i := range 4 * maxBatches {
			require.NoError(t, l.take(numbered(i, batchBytes/2+1), schema.GroupVersionKind{}))
		}
		require.NoError(t, l.take(numbered(4*maxBatches, 2*batchBytes), schema.GroupVersionKind{}), "decoded alone, in its place")
		require.Len(t, got, 4*maxBatches+1)
		for i, name := range got {
			require.Equal(t, fmt.Sprint(i), name)
		}
		require.NoError(t, l.end())
	})
}

func TestBatchesInFlightAreBounded(t *testing.T) {
	manyCores(t)
	var mu sync.Mutex
	first := make(chan struct{})
	taken, delivered, most := 0, 0, 0
	l := gatedItems(func(name string) {
		if name == "0" {
			<-first
		}
	}, func(*corev1.Pod, error) bool {
		mu.Lock()
		defer mu.Unlock()
		delivered++
		return true
	})
	defer l.stop()
	const each = batchBytes / 16
	for i := range 16 * 3 * maxBatches {
		mu.Lock()
		most = max(most, taken-delivered)
		taken++
		mu.Unlock()
		if i == 16*(maxBatches-1) { // one more batch waits for the first one
			close(first)
		}
		require.NoError(t, l.take(numbered(i, each-4), schema.GroupVersionKind{}))
	}
	require.NoError(t, l.end())
	require.LessOrEqual(t, most*each, (maxBatches+1)*batchBytes)
	require.Greater(t, most*each, batchBytes, "the first batch has held the others up")
}

// A batch of many small items is full by their number, and none has the bytes of another.
func TestSmallItemsFillBatches(t *testing.T) {
	manyCores(t)
	var got []string
	l := gatedItems(func(string) {}, func(p *corev1.Pod, err error) bool {
		require.NoError(t, err)
		got = append(got, p.Name)
		return true
	})
	defer l.stop()
	const count = 40 * batchItems
	for i := range count {
		require.NoError(t, l.take(numbered(i, 1), schema.GroupVersionKind{}))
	}
	require.NoError(t, l.end())
	require.Len(t, got, count)
	for i, name := range got {
		require.Equal(t, fmt.Sprint(i), name)
	}
}

func TestNothingOfAListBehindAnErrorIsDelivered(t *testing.T) {
	manyCores(t)
	var got []string
	l := gatedItems(func(string) {}, func(p *corev1.Pod, _ error) bool {
		got = append(got, p.Name)
		return len(got) < 5
	})
	defer l.stop()
	err := error(nil)
	for i := 0; i < 100 && err == nil; i++ {
		err = l.take(numbered(i, batchBytes/3), schema.GroupVersionKind{})
	}
	require.ErrorIs(t, err, errStopped)
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, got)
}

// An item that has arrived does not wait for a read, and to leave the loop ends the read.
func TestItemsDoNotWaitForARead(t *testing.T) {
	var message []byte
	for i := range 200 {
		message = append(message, field(wire.ListItems, marshalled(t, somePod(i, 3000)))...)
	}
	body := envelopeOf("v1", "PodList", message)
	cut := len(body) - 10 // in the last item
	for _, cores := range []int{1, 2, maxDecode} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprint(cores, " cores, the loop is left: ", left), func(t *testing.T) {
				before := runtime.GOMAXPROCS(cores)
				t.Cleanup(func() { runtime.GOMAXPROCS(before) })
				from, to := io.Pipe()
				all := make(chan struct{})
				var sending sync.WaitGroup
				sending.Go(func() {
					_, _ = to.Write(body[:cut])
					if <-all; !left {
						_, _ = to.Write(body[cut:])
						_ = to.Close()
					}
				})
				got := 0
				_, err := podDecoder(maxObject).list(from, func(p *corev1.Pod, err error) bool {
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint("pod-", got), p.Name)
					if got++; got == 199 { // all that has arrived
						close(all)
						return !left
					}
					return true
				})
				sending.Wait()
				require.Equal(t, left, errors.Is(err, errStopped), "%v", err)
				if !left {
					require.Equal(t, 200, got)
				}
			})
		}
	}
}
