package listwatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// The fuzz targets compare with apimachinery's own decoders. Ours may refuse more (see the messages
// in errors.go). It may accept nothing that they refuse, and the results must be equal.

const (
	fuzzLimit = 64 << 10
	fuzzBody  = 256 << 10
)

func seedPods() *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "c"}}
	for _, name := range []string{"a", "b"} {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: map[string]string{"x": "}\\\"\u00fc"}},
			Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Args: []string{"1"}}}},
		})
	}
	return list
}

func seedList(f *testing.F, media string) []byte {
	f.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	body, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), seedPods())
	require.NoError(f, err)
	return body
}

func seedWatch(f *testing.F, media string) []byte {
	f.Helper()
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	var body bytes.Buffer
	envelope := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion)
	out := restwatch.NewEncoder(streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(&body), envelope),
		scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion))
	for i, kind := range []watch.EventType{watch.Added, watch.Bookmark} {
		require.NoError(f, out.Encode(&watch.Event{Type: kind, Object: &seedPods().Items[i]}))
	}
	require.NoError(f, out.Encode(&watch.Event{Type: watch.Error, Object: &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired}}))
	return body.Bytes()
}

// requireFrugal bounds the allocations of read by the size of the body.
func requireFrugal(t *testing.T, body []byte, read func()) {
	t.Helper()
	// The worst case in JSON is {}, a container of 1 KiB. Readers and buffers cost 200 KiB.
	require.Less(t, allocated(read), uint64(4<<20+2048*len(body)))
}

// fuzzList reads a list with our decoder; whole means that there was no error at all.
func fuzzList(t *testing.T, body []byte) (pods []corev1.Pod, meta metav1.ListMeta, whole bool) {
	t.Helper()
	whole = true
	requireFrugal(t, body, func() {
		var err error
		meta, err = podDecoder(fuzzLimit).list(io.NopCloser(bytes.NewReader(body)), func(obj *corev1.Pod, err error) bool {
			var unusable *DecodeError
			require.True(t, err == nil || errors.As(err, &unusable), "%v", err)
			if err == nil {
				pods = append(pods, *obj)
			}
			whole = whole && err == nil
			return true
		})
		whole = whole && err == nil
	})
	return pods, meta, whole
}

func FuzzProtobufList(f *testing.F) {
	body := seedList(f, runtime.ContentTypeProtobuf)
	f.Add(body)
	f.Add(body[:len(body)-4])
	f.Add([]byte(wire.Magic + string(field(wire.UnknownRaw, nil))))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > fuzzBody || !bytes.HasPrefix(body, []byte(wire.Magic)) {
			t.Skip()
		}
		pods, meta, whole := fuzzList(t, body)
		if !whole {
			return
		}
		// The envelope's version is the client's business: it requested a path of that version.
		var envelope runtime.Unknown
		require.NoError(t, envelope.Unmarshal(body[len(wire.Magic):]))
		require.Contains(t, []string{"", "PodList"}, envelope.Kind)
		var theirs corev1.PodList
		require.NoError(t, theirs.Unmarshal(envelope.Raw))
		require.Equal(t, theirs.ListMeta, meta)
		require.Equal(t, theirs.Items, pods)
	})
}

func FuzzJSONList(f *testing.F) {
	f.Add(seedList(f, runtime.ContentTypeJSON))
	f.Add([]byte(` {"x":[1,"\u0022]",{}],"items":null,"kind":"PodList"} `))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > fuzzBody || bytes.HasPrefix(body, []byte(wire.Magic)) {
			t.Skip()
		}
		pods, meta, whole := fuzzList(t, body)
		if !whole {
			return
		}
		var theirs corev1.PodList
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(body, &theirs))
		require.Contains(t, []string{"", "PodList"}, theirs.Kind)
		require.Equal(t, theirs.ListMeta, meta)
		require.Len(t, pods, len(theirs.Items))
		for i := range pods {
			theirs.Items[i].TypeMeta = metav1.TypeMeta{} // they keep an item's own kind
			require.Equal(t, theirs.Items[i], pods[i])
		}
	})
}

// step is the result of one frame: an event, or that the frame was faulty.
type step struct {
	kind watch.EventType
	pod  *corev1.Pod
}

func fuzzWatch(t *testing.T, body []byte) (steps []step, err error) {
	t.Helper()
	requireFrugal(t, body, func() {
		err = podDecoder(fuzzLimit).watch(bytes.NewReader(body), false, func(event Event[*corev1.Pod], err error) bool {
			var unusable *DecodeError
			require.True(t, err == nil || errors.As(err, &unusable), "%v", err)
			if err != nil {
				event = Event[*corev1.Pod]{}
			}
			steps = append(steps, step{event.Type, event.Object})
			return true
		})
	})
	return steps, err
}

// judgeWatch reads the same body with client-go's decoder, frame by frame, and compares each frame
// that both could read. It stops where client-go does: at its first error.
func judgeWatch(t *testing.T, media string, body []byte) {
	t.Helper()
	ours, err := fuzzWatch(t, body)
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(bytes.NewReader(body)))
	theirs := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), info.Serializer)
	for i, our := range ours {
		kind, obj, theirErr := theirs.Decode()
		if theirErr != nil && refusesVersion(theirErr) {
			return
		}
		if theirErr != nil {
			require.Zero(t, our, "frame %d: ours took what theirs refused: %v", i, theirErr)
			return
		}
		if our.kind == "" {
			continue // we refused it: another kind, a duplicate field, …
		}
		require.Equal(t, our.kind, kind)
		pod, ok := obj.(*corev1.Pod)
		require.True(t, ok, "frame %d: %T", i, obj)
		if our.kind != watch.Bookmark {
			pod.TypeMeta = metav1.TypeMeta{}
			require.Equal(t, pod, our.pod)
		}
	}
	if err == nil {
		_, _, theirErr := theirs.Decode()
		require.Error(t, theirErr, "ours ended, theirs goes on")
	}
}

// refusesVersion recognises their refusal of an apiVersion. Ours relies on the requested path,
// which has one.
func refusesVersion(err error) bool {
	for _, text := range []string{"is registered for version", "'apiVersion' is missing", "unexpected GroupVersion string"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

func FuzzProtobufWatch(f *testing.F) {
	body := seedWatch(f, runtime.ContentTypeProtobuf)
	f.Add(body)
	f.Add(body[:len(body)-3])
	f.Add(append(binary.BigEndian.AppendUint32(nil, 0), body...))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > fuzzBody || len(body) > 0 && (body[0] == '{' || wire.IsSpace(body[0])) {
			t.Skip()
		}
		judgeWatch(t, runtime.ContentTypeProtobuf, body)
	})
}

func FuzzJSONWatch(f *testing.F) {
	body := seedWatch(f, runtime.ContentTypeJSON)
	f.Add(body)
	f.Add(body[:len(body)-3])
	f.Add([]byte(` {"x":0,"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > fuzzBody || len(body) == 0 || !(body[0] == '{' || wire.IsSpace(body[0])) {
			t.Skip()
		}
		judgeWatch(t, runtime.ContentTypeJSON, body)
	})
}
