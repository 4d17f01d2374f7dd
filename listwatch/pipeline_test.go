package listwatch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/internal/wire"
)

// manyCores lets several goroutines decode on any machine.
func manyCores(t *testing.T) {
	before := runtime.GOMAXPROCS(maxDecode)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func seeded(t *testing.T) *rand.Rand {
	seed := time.Now().UnixNano()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewSource(seed))
}

// somePod shares some parts with other pods.
func somePod(i, size int) *corev1.Pod {
	var managed []metav1.ManagedFieldsEntry
	for i := range i % 3 {
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprint("kubelet-", i), Operation: "Update", FieldsV1: fieldsv1.Of(`{"f:spec":{"f:a":{}}}`),
		})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i), Namespace: "shop", UID: types.UID(fmt.Sprint("uid-", i)),
			ResourceVersion: fmt.Sprint(100 + i), Labels: map[string]string{"app": "web", "half": fmt.Sprint(i / 2)}, ManagedFields: managed},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i%3), Containers: []corev1.Container{
			{Name: "web", Image: "registry.example/web:1", Args: []string{strings.Repeat("x", size)}},
			{Name: "sidecar", Image: fmt.Sprint("registry.example/sidecar:", i%5)}}},
	}
}

func marshalled(t *testing.T, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	data, err := obj.Marshal()
	require.NoError(t, err)
	return data
}

func envelopeOf(apiVersion, kind string, message []byte) []byte {
	head := append(field(1, []byte(apiVersion)), field(2, []byte(kind))...)
	return append([]byte(wire.Magic), append(field(wire.UnknownTypeMeta, head), field(wire.UnknownRaw, message)...)...)
}

func frameOf(event string, envelope []byte) []byte {
	inner := append(field(wire.EventType, []byte(event)), field(wire.EventObject, field(wire.ExtensionRaw, envelope))...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(inner))), inner...)
}

func podFrame(t *testing.T, event watch.EventType, p *corev1.Pod) []byte {
	return frameOf(string(event), envelopeOf("v1", "Pod", marshalled(t, p)))
}

// randomWatch returns the body of a watch of n frames, some of them faulty.
func randomWatch(t *testing.T, random *rand.Rand, n int) []byte {
	var body []byte
	for i := range n {
		kind := []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark}[random.Intn(4)]
		p := somePod(i, random.Intn(300))
		if kind == watch.Modified {
			p.UID = types.UID(fmt.Sprint("changing-", i%3))
		}
		data := marshalled(t, p)
		switch random.Intn(60) {
		case 0:
			body = append(body, 0, 0, 0, 3, 0xff, 0xff, 0xff)
		case 1:
			body = append(body, frameOf("MOVED", envelopeOf("v1", "Pod", data))...)
		case 2:
			body = append(body, frameOf(string(kind), envelopeOf("v1", "Node", data))...)
		case 3:
			body = append(body, frameOf(string(kind), envelopeOf("v1", "Pod", data[:len(data)-2]))...)
		case 4:
			body = append(body, frameOf(string(kind), []byte("no envelope"))...)
		case 5:
			// Too large for every reader.
			body = append(body, podFrame(t, kind, somePod(i, maxAhead+random.Intn(1000)))...)
		case 6:
			if random.Intn(4) == 0 {
				status := marshalled(t, &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired})
				body = append(body, frameOf("ERROR", envelopeOf("v1", "Status", status))...)
			}
		case 7:
			if random.Intn(4) == 0 {
				body = append(body, 0xff, 0xff, 0xff, 0xff)
			}
		default:
			body = append(body, frameOf(string(kind), envelopeOf("v1", "Pod", data))...)
		}
	}
	return cutAnywhere(random, body)
}

// randomList returns the body of a list, some of its items faulty.
func randomList(t *testing.T, random *rand.Rand, n int) []byte {
	message := field(wire.ListMeta, field(2, []byte("4711")))
	size := []int{300, 10_000}[random.Intn(2)] // within a batch, and in several ones
	for i := range n {
		data := marshalled(t, somePod(i, random.Intn(size)))
		switch random.Intn(60) {
		case 0:
			data = data[:len(data)-2]
		case 1:
			message = append(message, field(wire.ListItems+100, []byte("unknown"))...)
		case 2:
			data = nil
		case 3:
			data = marshalled(t, somePod(i, maxAhead+random.Intn(1000)))
		case 4:
			if random.Intn(4) == 0 {
				message = append(message, wire.ListItems<<3) // another wire type
			}
		}
		message = append(message, field(wire.ListItems, data)...)
	}
	body := envelopeOf("v1", "PodList", message)
	if random.Intn(4) == 0 {
		body = append(body, field(3, nil)...) // after the list
	}
	if random.Intn(8) == 0 {
		body = append(body, field(wire.UnknownRaw, nil)...) // like an item, but must not be yielded
	}
	return cutAnywhere(random, body)
}

func cutAnywhere(random *rand.Rand, body []byte) []byte {
	if random.Intn(3) == 0 {
		return body[:random.Intn(len(body)+1)]
	}
	return body
}

// inPieces reads in pieces of random size.
type inPieces struct {
	r      io.Reader
	random *rand.Rand
}

func (p inPieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.random.Intn([]int{10, 3000, 100_000, 1_000_000}[p.random.Intn(4)]))])
}

type outcome struct {
	event Event[*corev1.Pod]
	err   string
}

func outcomes(t *testing.T, read func(d *decoder[*corev1.Pod], step func(Event[*corev1.Pod], error) bool) error) (all []outcome) {
	t.Helper()
	d := podDecoder(maxObject)
	err := read(d, func(event Event[*corev1.Pod], err error) bool {
		all = append(all, outcome{event: event, err: fmt.Sprint(err)})
		return true
	})
	return append(all, outcome{err: fmt.Sprint("end: ", err)})
}

// One byte at a time, no frame ever waits, so each is decoded as it comes: that run is the judge.
func TestWhatIsReadAheadIsWhatIsReadAsItComes(t *testing.T) {
	manyCores(t)
	random := seeded(t)
	for range 15 {
		requireSameInPieces(t, random, randomWatch(t, random, 10+random.Intn(150)), randomList(t, random, 10+random.Intn(150)))
	}
}

func requireSameInPieces(t *testing.T, random *rand.Rand, watched, listed []byte) {
	t.Helper()
	broken := errors.New("connection reset")
	end := iotest.ErrReader([]error{io.EOF, broken}[random.Intn(2)])
	ways := []func(body []byte) io.Reader{
		func(body []byte) io.Reader { return iotest.OneByteReader(io.MultiReader(bytes.NewReader(body), end)) },
		func(body []byte) io.Reader { return inPieces{io.MultiReader(bytes.NewReader(body), end), random} },
		func(body []byte) io.Reader { return iotest.DataErrReader(io.MultiReader(bytes.NewReader(body), end)) },
	}
	var events, items []outcome
	for i, way := range ways {
		gotEvents := outcomes(t, func(d *decoder[*corev1.Pod], step func(Event[*corev1.Pod], error) bool) error {
			return d.watch(way(watched), false, step)
		})
		gotItems := outcomes(t, func(d *decoder[*corev1.Pod], step func(Event[*corev1.Pod], error) bool) error {
			meta, err := d.list(io.NopCloser(way(listed)), func(obj *corev1.Pod, err error) bool { return step(Event[*corev1.Pod]{Object: obj}, err) })
			step(Event[*corev1.Pod]{ResourceVersion: meta.ResourceVersion}, nil)
			return err
		})
		if i == 0 {
			events, items = gotEvents, gotItems
			continue
		}
		require.Equal(t, events, gotEvents)
		require.Equal(t, items, gotItems)
	}
}

// byTwos is a pipeline whose decoding blocks until two pieces are being decoded.
func byTwos(deliver func(int, error) error) *pipeline[int, int] {
	var mu sync.Mutex
	met := sync.NewCond(&mu)
	inside := 0
	return newPipeline(neighbours, func(i int) (int, error) {
		if i >= 2*neighbours { // any goroutine may decode the earlier ones, alone or not
			return i, nil
		}
		mu.Lock()
		defer mu.Unlock()
		inside++
		met.Broadcast()
		for i%neighbours == 0 && inside < 2 {
			met.Wait()
		}
		return i, nil
	}, deliver)
}

func TestPiecesAreDecodedTogetherAndDeliveredInOrder(t *testing.T) {
	manyCores(t)
	synctest.Test(t, func(t *testing.T) { // one goroutine alone would be a deadlock
		var got []int
		p := byTwos(func(i int, err error) error { got = append(got, i); return err })
		defer p.stop()
		for i := range 20 {
			require.NoError(t, p.put(i))
		}
		require.NoError(t, p.known(-20))
		require.NoError(t, p.now(21))
		for i := range 20 {
			require.Equal(t, i, got[i])
		}
		require.Equal(t, []int{-20, 21}, got[20:])
		require.NoError(t, p.known(-22), "nothing is before it")
		require.Equal(t, -22, got[22])
	})
}

// A quiet watch does not keep the room of a burst.
func TestThePiecesInFlightAreBounded(t *testing.T) {
	for _, cores := range []int{1, maxDecode} {
		before := runtime.GOMAXPROCS(cores)
		t.Cleanup(func() { runtime.GOMAXPROCS(before) })
		got := 0
		p := newPipeline(neighbours, func(i int) (int, error) { return i, nil }, func(i int, _ error) error {
			require.Equal(t, got, i)
			got++
			return nil
		})
		for i := range 1000 {
			require.NoError(t, p.put(i))
		}
		require.NoError(t, p.end())
		require.Equal(t, 1000, got)
		require.LessOrEqual(t, len(p.spare), maxBatches)
		p.stop()
	}
}

func TestNothingBehindAnErrorIsDelivered(t *testing.T) {
	manyCores(t)
	stop := errors.New("stop")
	var got []int
	p := byTwos(func(i int, _ error) error {
		got = append(got, i)
		if i == 5 {
			return stop
		}
		return nil
	})
	defer p.stop()
	for i := range 8 {
		require.NoError(t, p.put(i))
	}
	require.ErrorIs(t, p.now(8), stop)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, got)
}

// A complete frame does not wait for an incomplete one.
func TestEventThatComesAloneIsHandedOnAtOnce(t *testing.T) {
	requireHandedOnAtOnce(t, 3, func(pod *corev1.Pod) (frame []byte, decisive int) {
		frame = podFrame(t, watch.Added, pod)
		return frame, len(frame)
	})
}

// requireHandedOnAtOnce sends two frames, with some bytes of the second one behind the first, cut
// in several ways. A frame is complete with its decisive bytes.
func requireHandedOnAtOnce(t *testing.T, cuts int, frameOf func(*corev1.Pod) (frame []byte, decisive int)) {
	t.Helper()
	for _, size := range []int{10, 2 * watchBuffer, 2 * maxAhead} {
		first, _ := frameOf(somePod(1, size))
		second, decisive := frameOf(somePod(2, size))
		from, to := io.Pipe()
		names := make(chan string, 2)
		var running sync.WaitGroup
		running.Go(func() {
			_ = podDecoder(maxObject).watch(from, false, func(event Event[*corev1.Pod], _ error) bool {
				names <- event.Object.Name
				return true
			})
		})
		for cut := range cuts {
			_, err := to.Write(append(bytes.Clone(first), second[:cut*3]...))
			require.NoError(t, err)
			require.Equal(t, "pod-1", <-names)
			_, err = to.Write(second[cut*3 : decisive])
			require.NoError(t, err)
			require.Equal(t, "pod-2", <-names)
		}
		require.NoError(t, to.Close())
		running.Wait()
	}
}

// A quiet watch does not keep a large reader.
func TestLargeReaderIsGivenBack(t *testing.T) {
	body := append(podFrame(t, watch.Added, somePod(1, 2*watchBuffer)), podFrame(t, watch.Added, somePod(2, 10))...)
	own := bufio.NewReaderSize(bytes.NewReader(body), watchBuffer)
	frames := &protobufFrames[*corev1.Pod]{own: own, r: own, limit: maxObject}
	_, err := frames.next()
	require.NoError(t, err)
	require.NotSame(t, own, frames.r, "it has read ahead")
	require.True(t, frames.waits())
	_, err = frames.next()
	require.NoError(t, err)
	require.False(t, frames.waits())
	_, err = frames.next()
	require.ErrorIs(t, err, io.EOF)
	require.Same(t, own, frames.r)
}

func TestWhatIsHeldKeepsItsPlace(t *testing.T) {
	manyCores(t)
	var message, stream []byte
	held := map[string]*corev1.Pod{}
	for i := range 200 {
		p := somePod(i, 10)
		message = append(message, field(wire.ListItems, marshalled(t, p))...)
		stream = append(stream, podFrame(t, watch.Added, p)...)
		if i%17 == 3 || i > 180 {
			held["shop/"+p.Name] = p.DeepCopy()
		}
	}
	d := podDecoder(maxObject)
	d.held = &heldCopy[*corev1.Pod]{digests: newDigests(), get: func(key string) (_ *corev1.Pod, kept any, ok bool) {
		p, ok := held[key]
		return p, p, ok
	}}
	check := func(got []*corev1.Pod) {
		require.Len(t, got, 200)
		for i, p := range got {
			require.Equal(t, fmt.Sprint("pod-", i), p.Name)
			if want, ok := held["shop/"+p.Name]; ok {
				require.Same(t, want, p)
			} else {
				require.Equal(t, somePod(i, 10), p)
			}
		}
	}
	var items, objects []*corev1.Pod
	_, err := d.list(io.NopCloser(bytes.NewReader(envelopeOf("v1", "PodList", message))), func(p *corev1.Pod, err error) bool {
		require.NoError(t, err)
		items = append(items, p)
		return true
	})
	require.NoError(t, err)
	check(items)
	require.NoError(t, d.watch(bytes.NewReader(stream), false, func(event Event[*corev1.Pod], err error) bool {
		require.NoError(t, err)
		objects = append(objects, event.Object)
		return true
	}))
	check(objects)
}

// TestNoBufferKeepsAListOfSecrets: the buffers that lists share have nothing of a Secret.
func TestNoBufferKeepsAListOfSecrets(t *testing.T) {
	manyCores(t)
	value := []byte("the password of a database")
	message := field(wire.ListMeta, field(2, []byte("7")))
	for i := range 400 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("secret-", i)}, Data: map[string][]byte{"password": value}}
		message = append(message, field(wire.ListItems, marshalled(t, secret))...)
	}
	d := newDecoder[corev1.Secret]()
	d.fleeting = true
	listed := 0
	_, err := d.list(io.NopCloser(bytes.NewReader(envelopeOf("v1", "SecretList", message))), func(secret *corev1.Secret, err error) bool {
		require.NoError(t, err)
		require.Equal(t, value, secret.Data["password"])
		listed++
		return true
	})
	require.NoError(t, err)
	require.Equal(t, 400, listed)
	for range 50 {
		buffer := *batchBuffers.Get().(*[]byte)
		require.False(t, bytes.Contains(buffer[:cap(buffer)], value))
	}
}
