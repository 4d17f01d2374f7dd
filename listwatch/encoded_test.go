package listwatch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/store"
)

// reopened is the object of an encoded one, as its reader would decode it.
func reopened[T store.Object](t *testing.T, e *store.Encoded, fresh T) T {
	t.Helper()
	if e == nil {
		var none T
		return none
	}
	var obj store.Object = fresh
	switch {
	case e.Data == nil:
		obj = e.Decoded
	case e.JSON:
		into := any(obj)
		if tree, ok := into.(*unstructured.Unstructured); ok {
			into = &tree.Object
		}
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(e.Data, into))
		obj.GetObjectKind().SetGroupVersionKind(e.GroupVersionKind())
	default:
		require.NoError(t, obj.(unmarshaler).Unmarshal(e.Data))
		obj.GetObjectKind().SetGroupVersionKind(e.GroupVersionKind())
	}
	require.Equal(t, obj.GetName(), e.Name)
	require.Equal(t, obj.GetNamespace(), e.Namespace)
	require.Equal(t, obj.GetUID(), e.UID)
	require.Equal(t, obj.GetResourceVersion(), e.ResourceVersion)
	return obj.(T)
}

// requireSameEncoded reads bodies decoded and encoded: objects and errors are the same.
func requireSameEncoded[T store.Object](t *testing.T, drop bool, fresh func() T, watched, listed []byte) (kept int) {
	t.Helper()
	type step struct {
		kind    string
		obj     any
		version string
		bytes   int
		err     string
	}
	_, protobuf := any(fresh()).(unmarshaler)
	newDecoder := func() *decoder[T] {
		return &decoder[T]{new: fresh, kind: kindOf(fresh()), protobuf: protobuf, limit: maxObject, plain: podDecoder(0).plain, drop: drop}
	}
	var want, got []step
	d := newDecoder()
	err := d.watch(bytes.NewReader(watched), false, func(e Event[T], err error) bool {
		want = append(want, step{string(e.Type), e.Object, e.ResourceVersion, e.Bytes, fmt.Sprint(err, e.InitialEventsEnd, e.kind)})
		return true
	})
	want = append(want, step{err: fmt.Sprint(err)})
	meta, err := d.list(io.NopCloser(bytes.NewReader(listed)), func(obj T, err error) bool {
		want = append(want, step{obj: obj, err: fmt.Sprint(err)})
		return true
	})
	want = append(want, step{version: meta.ResourceVersion, err: fmt.Sprint(err)})

	c := newChecker(newDecoder(), false)
	err = c.watch(bytes.NewReader(watched), false, func(e Event[*store.Encoded], err error) bool {
		if e.Object != nil && e.Object.Data != nil {
			kept++
			require.False(t, drop && bytes.Contains(e.Object.Data, []byte("kubelet")), "it has managed fields")
		}
		got = append(got, step{string(e.Type), reopened(t, e.Object, fresh()), e.ResourceVersion, e.Bytes, fmt.Sprint(err, e.InitialEventsEnd, e.kind)})
		return true
	})
	got = append(got, step{err: fmt.Sprint(err)})
	meta, err = c.list(io.NopCloser(bytes.NewReader(listed)), func(e *store.Encoded, err error) bool {
		got = append(got, step{obj: reopened(t, e, fresh()), err: fmt.Sprint(err)})
		return true
	})
	got = append(got, step{version: meta.ResourceVersion, err: fmt.Sprint(err)})
	require.Equal(t, want, got)
	return kept
}

// TestEncodedIsWhatIsDecoded: whatever a server sends, a reader of bytes gets the objects and the
// errors that a reader of objects gets.
func TestEncodedIsWhatIsDecoded(t *testing.T) {
	random := seeded(t)
	spoil := func(body []byte) []byte {
		body = bytes.Clone(body)
		for range random.Intn(4) {
			if len(body) > 0 {
				body[random.Intn(len(body))] = byte(random.Intn(256))
			}
		}
		return body
	}
	kept, lean := 0, 0
	for range 40 {
		n := 5 + random.Intn(60)
		watched, listed := randomWatch(t, random, n), randomList(t, random, n)
		lean += requireSameEncoded(t, true, newPod, watched, listed) + requireSameEncoded(t, true, newHead, watched, listed)
		watched, listed = spoil(watched), spoil(listed)
		kept += requireSameEncoded(t, false, newPod, watched, listed) + requireSameEncoded(t, false, newHead, watched, listed)
		watched, listed = randomJSONWatch(t, random, n), randomJSONList(t, random, n)
		lean += requireSameEncoded(t, true, newPod, watched, listed) + requireSameEncoded(t, true, newTree, watched, listed)
		requireSameEncoded(t, true, newHead, watched, listed)
		watched, listed = spoil(watched), spoil(listed)
		kept += requireSameEncoded(t, false, newPod, watched, listed) + requireSameEncoded(t, false, newTree, watched, listed)
		requireSameEncoded(t, false, newHead, watched, listed)
	}
	require.Greater(t, kept, 1000, "most need no decoding")
	require.Greater(t, lean, 1000, "nor without managed fields")
}

// TestANamedBookmarkEndsAList: a bookmark's annotations count in each form, though its bytes could
// be kept.
func TestANamedBookmarkEndsAList(t *testing.T) {
	pod := somePod(1, 100)
	pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	protobuf, text := podFrame(t, watch.Bookmark, pod), []byte(jsonEvent(t, watch.Bookmark, pod))
	requireSameEncoded(t, false, newPod, protobuf, nil)
	requireSameEncoded(t, false, newPod, text, nil)
	requireSameEncoded(t, false, newTree, text, nil)
	requireSameEncoded(t, true, newTree, text, nil)
	ended := false
	require.NoError(t, newChecker(podDecoder(maxObject), false).watch(bytes.NewReader(protobuf), false,
		func(e Event[*store.Encoded], err error) bool {
			require.NoError(t, err)
			ended = e.InitialEventsEnd
			return true
		}))
	require.True(t, ended)
}

func newPod() *corev1.Pod                    { return new(corev1.Pod) }
func newTree() *unstructured.Unstructured    { return new(unstructured.Unstructured) }
func newHead() *metav1.PartialObjectMetadata { return new(metav1.PartialObjectMetadata) }

// TestTheUsualIsNotDecoded: a server's protobuf, and its JSON of trees.
func TestTheUsualIsNotDecoded(t *testing.T) {
	pod := somePod(1, 100)
	checkPods := newChecker(podDecoder(maxObject), false)
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		require.NoError(t, checkPods.watch(bytes.NewReader(frameOf(kind, envelopeOf("v1", "Pod", marshalled(t, pod)))), false,
			func(e Event[*store.Encoded], err error) bool {
				require.NoError(t, err)
				require.Nil(t, e.Object.Decoded)
				require.Equal(t, marshalled(t, pod), e.Object.Data)
				require.False(t, e.Object.Fleeting)
				return true
			}))
	}
	trees := newChecker(newDecoder[unstructured.Unstructured](), true)
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","uid":"u","resourceVersion":"3"},"spec":{"size":[1.5,-2]}}`
	require.NoError(t, trees.watch(bytes.NewReader([]byte(`{"type":"ADDED","object":`+text+`}`)), false, func(e Event[*store.Encoded], err error) bool {
		require.NoError(t, err)
		require.Nil(t, e.Object.Decoded)
		require.Equal(t, text, string(e.Object.Data))
		require.True(t, e.Object.JSON)
		require.True(t, e.Object.Fleeting)
		require.Equal(t, "Widget", e.Object.Kind)
		return true
	}))
}

// TestWithoutManagedFieldsNothingIsDecodedEither: their bytes are cut out. An event's length stays
// that of the wire.
func TestWithoutManagedFieldsNothingIsDecodedEither(t *testing.T) {
	d := podDecoder(maxObject)
	d.drop = true
	pod := somePod(2, 100)
	whole := marshalled(t, pod)
	pod.ManagedFields = nil
	trees := newDecoder[unstructured.Unstructured]()
	trees.drop = true
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"%s},"spec":{"managedFields":[7]}}`
	with, without := fmt.Sprintf(text, `, "managedFields" : [{"manager":"]}"}]`), fmt.Sprintf(text, "")
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		require.NoError(t, newChecker(d, false).watch(bytes.NewReader(frameOf(kind, envelopeOf("v1", "Pod", whole))), false,
			func(e Event[*store.Encoded], err error) bool {
				require.NoError(t, err)
				require.Nil(t, e.Object.Decoded)
				require.Equal(t, marshalled(t, pod), e.Object.Data)
				require.Equal(t, len(whole), e.Bytes)
				return true
			}))
		require.NoError(t, newChecker(trees, false).watch(bytes.NewReader(fmt.Appendf(nil, `{"type":%q,"object":%s}`, kind, with)), false,
			func(e Event[*store.Encoded], err error) bool {
				require.NoError(t, err)
				require.Nil(t, e.Object.Decoded)
				require.Equal(t, without, string(e.Object.Data))
				require.Equal(t, len(with), e.Bytes)
				return true
			}))
	}
}

// shelf keeps the bytes of objects as they are: a [store.Form].
type shelf struct{}

type entry struct {
	*corev1.Pod
	data []byte
}

func (shelf) Arrive(_ string, item, _ store.Entry) (store.Entry, store.Reading, error) {
	pod := item.(*corev1.Pod)
	data, err := pod.Marshal()
	return &entry{pod, data}, nil, err
}

func (shelf) Open(of store.Entry) *corev1.Pod        { return of.(*entry).Pod }
func (shelf) Read(store.Entry) store.Reading         { panic("there is no index") }
func (shelf) Holds(of store.Entry, data []byte) bool { return bytes.Equal(of.(*entry).data, data) }

// body answers each request with the same bytes.
type body []byte

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(b))}, nil
}

// TestHeldBytesAreNotRead: an object that comes in the bytes of an entry is that entry. Others are
// read, under an equal version, too. Bytes that are cut out are none of the entry's.
func TestHeldBytesAreNotRead(t *testing.T) {
	t.Run("all bytes", func(t *testing.T) { testHeldBytes(t) })
	t.Run("without managed fields", func(t *testing.T) { testHeldBytes(t, DropManagedFields()) })
}

func testHeldBytes(t *testing.T, options ...Option) {
	held, changed, newer, added := somePod(1, 50), somePod(2, 50), somePod(3, 50), somePod(4, 50)
	s := store.NewFormed[*corev1.Pod](shelf{})
	for _, pod := range []*corev1.Pod{held, changed, newer} {
		kept := pod.DeepCopy()
		if len(options) > 0 {
			kept.ManagedFields = nil
		}
		require.NoError(t, s.Add(kept))
	}
	changed.Spec.NodeName = "another"
	newer.ResourceVersion = "77"
	var listed, watched []byte
	for _, pod := range []*corev1.Pod{held, changed, newer, added} {
		listed = append(listed, field(2, marshalled(t, pod))...)
		watched = append(watched, frameOf("ADDED", envelopeOf("v1", "Pod", marshalled(t, pod)))...)
	}
	source := func(answer []byte) ListerWatcher[*store.Encoded] {
		config := &rest.Config{Host: "http://server.example", Transport: body(answer)}
		client, err := NewRESTClient(config, schema.GroupVersion{Version: "v1"})
		require.NoError(t, err)
		return FromClient[corev1.Pod](client, "pods", options...).Encoded().Holding(s.Encoded().(interface {
			Get(key string) (*store.Encoded, bool)
		}).Get)
	}
	got := map[string]int{}
	check := func(e *store.Encoded, err error) {
		require.NoError(t, err)
		got[e.Name]++
		if e.Entry != nil {
			of, _ := s.Entries().Get(store.KeyOf(held))
			require.Same(t, of, e.Entry)
			return
		}
		require.NotEqual(t, held.Name, e.Name)
		require.NotEmpty(t, e.Data)
		require.Equal(t, len(options) == 0 && e.Name != newer.Name, bytes.Contains(e.Data, []byte("kubelet")), e.Name)
	}
	for e, err := range source(envelopeOf("v1", "PodList", listed)).List(t.Context(), metav1.ListOptions{}).Items {
		check(e, err)
	}
	for event, err := range source(watched).Watch(t.Context(), metav1.ListOptions{}) {
		check(event.Object, err)
	}
	require.Equal(t, map[string]int{held.Name: 2, changed.Name: 2, newer.Name: 2, added.Name: 2}, got)
}

// FuzzEncoded: no item is kept that decoding refuses.
func FuzzEncoded(f *testing.F) {
	for _, seed := range []int64{1, 2, 3} {
		random := rand.New(rand.NewSource(seed))
		pod, _ := somePod(int(seed), 50).Marshal()
		f.Add(pod)
		f.Add(pod[:random.Intn(len(pod))])
	}
	f.Add([]byte(`{"metadata":{"name":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		watched := frameOf("ADDED", envelopeOf("v1", "Pod", data))
		listed := envelopeOf("v1", "PodList", field(2, data))
		requireSameEncoded(t, false, newPod, watched, listed)
		text := append(append([]byte(`{"type":"ADDED","object":`), data...), '}')
		list := append(append([]byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[`), data...), "]}"...)
		requireSameEncoded(t, false, newTree, text, list)
	})
}
