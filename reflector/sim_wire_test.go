package reflector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// In this file the model server speaks HTTP, and the copy keeps bytes.

// simulateBytes simulates a source of bytes and a packed store. A third of the seeds has pods in
// protobuf, a third has them in JSON, and a third has objects without a Go type.
func simulateBytes(t *testing.T, seed uint64, total *tally) {
	simulate(t, seed, total, func(m *model) rig[*store.Encoded] {
		w := &wire{model: m, json: seed/3%3 != 0, trees: seed/3%3 == 2}
		m.odd = w.trees
		client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://server.example", Transport: w, QPS: -1}, corev1.SchemeGroupVersion)
		require.NoError(t, err)
		if w.trees {
			return bytesRig(m, listwatch.FromClient[unstructured.Unstructured](client, "pods"), packed.New[unstructured.Unstructured], treeOf)
		}
		var options []listwatch.Option
		if w.json {
			options = append(options, listwatch.WithJSON())
		}
		return bytesRig(m, listwatch.FromClient[corev1.Pod](client, "pods", options...), packed.New[corev1.Pod], samePod)
	})
}

// bytesRig has an index that reads the bytes, or one that has each object decoded.
func bytesRig[O store.Object](m *model, source *listwatch.ListWatch[O], make func(...store.AnyIndex[O]) *packed.Store[O], of func(*corev1.Pod) O) rig[*store.Encoded] {
	byDefault := store.ByLabel[O]("default")
	if m.seed/9%4 == 0 {
		byDefault = store.NewIndex("default", func(obj O) []string { return []string{obj.GetLabels()["default"]} })
	}
	pods := make(byDefault)
	written := judged(m, pods.Encoded().(copied[*store.Encoded]), pods, byDefault)
	audit := written.audit
	written.audit = func() error { return errors.Join(audit(), readAtRest(pods)) }
	return rig[*store.Encoded]{
		source: source.Encoded(),
		store:  written,
		load: func(held []*corev1.Pod, version string) error {
			var objs []O
			for _, p := range held {
				objs = append(objs, of(p))
			}
			return pods.Replace(store.Items(objs...), store.At(version))
		},
	}
}

// readAtRest reads the metadata of each object as handlers of metadata do, who get it undecoded.
func readAtRest[O store.Object](pods *packed.Store[O]) error {
	for key, obj := range pods.Snapshot().All() {
		entry, ok := pods.Entries().Get(key)
		if !ok {
			return fmt.Errorf("%s is open, and not at rest", key)
		}
		atRest := entry.(store.Object)
		got, want := atRest.DeepCopyObject().(*metav1.PartialObjectMetadata), meta.AsPartialObjectMetadata(obj)
		want.TypeMeta = got.TypeMeta
		if !apiequality.Semantic.DeepEqual(got, want) || atRest.GetGeneration() != obj.GetGeneration() {
			return fmt.Errorf("the metadata of %s is %v at rest, and %v open", key, got, want)
		}
	}
	return nil
}

func samePod(p *corev1.Pod) *corev1.Pod { return p }

func treeOf(p *corev1.Pod) *unstructured.Unstructured {
	p.TypeMeta = podKind
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: tree}
}

var podKind = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}

// wire is the model as the transport of a client. It has no goroutine of its own: a read lets the
// model go on to its next event.
type wire struct {
	model  *model
	json   bool
	trees  bool // objects without a Go type, whose metadata nobody checks
	spoilt int  // objects so far
}

// RoundTrip answers when the model tells the first part of an answer, or an error in its place.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	var o metav1.ListOptions
	if err := scheme.ParameterCodec.DecodeParameters(request.URL.Query(), corev1.SchemeGroupVersion, &o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(request.Context())
	parts := w.list(ctx, o)
	if o.Watch {
		parts = w.watch(ctx, o)
	}
	b := &simBody{ctx: ctx, cancel: cancel}
	b.next, b.stop = iter.Pull2(parts)
	code, err := http.StatusOK, error(nil)
	b.left, err, _ = b.next()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = int(status.Status().Code)
		b.left, err = json.Marshal(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Message: status.Status().Message, Reason: status.Status().Reason, Details: status.Status().Details, Code: status.Status().Code})
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: b, Request: request}, nil
}

// simBody is the body of an answer.
type simBody struct {
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // held while the model has its turn
	next   func() ([]byte, error, bool)
	stop   func()
	left   []byte // of the part under way
}

func (a *simBody) Read(into []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.left) == 0 {
		part, err, more := a.next()
		switch {
		case a.ctx.Err() != nil:
			return 0, a.ctx.Err()
		case err != nil:
			return 0, err
		case !more:
			return 0, io.EOF
		}
		a.left = part
	}
	n := copy(into, a.left)
	a.left = a.left[n:]
	return n, nil
}

func (a *simBody) Close() error {
	a.cancel() // ends a read
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop()
	return nil
}

// list is one part with all items, and the error that cuts it short.
func (w *wire) list(ctx context.Context, o metav1.ListOptions) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		list := w.model.List(ctx, o)
		if name, ok := strings.CutPrefix(o.FieldSelector, "metadata.name="); ok {
			list, _ = w.model.Lookup(ctx, "", name)
		}
		var items [][]byte
		for p, err := range list.Items {
			unusable := (*listwatch.DecodeError)(nil)
			switch {
			case errors.As(err, &unusable):
				items = append(items, w.spoiled(podOf(unusable.Object, "@")))
			case err == nil:
				items = append(items, w.object(p))
			case len(items) == 0:
				yield(nil, err)
				return
			default:
				body := w.body(list.Meta(), items)
				_ = yield(body[:len(body)-1], nil) && yield(nil, err)
				return
			}
		}
		yield(w.body(list.Meta(), items), nil)
	}
}

func (w *wire) body(meta metav1.ListMeta, items [][]byte) []byte {
	head := metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	if w.json {
		text := must(json.Marshal(meta))
		return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[%s]}`, head.Kind, head.APIVersion, text, bytes.Join(items, []byte(",")))
	}
	message := field(1, must(meta.Marshal()))
	for _, item := range items {
		message = append(message, field(2, item)...)
	}
	return envelope(head, message)
}

// watch has a part for each event.
func (w *wire) watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		first := true
		for e, err := range w.model.Watch(ctx, o) {
			var part []byte
			unusable, status := (*listwatch.DecodeError)(nil), apierrors.APIStatus(nil)
			switch {
			case errors.As(err, &unusable):
				part = w.garbled(unusable.Object)
			case !first && errors.As(err, &status):
				of := status.Status()
				of.TypeMeta, err = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, nil
				data := must(of.Marshal())
				if w.json {
					data = must(json.Marshal(of))
				}
				part = w.frame(watch.Error, of.TypeMeta, data)
			case err != nil:
				yield(nil, err)
				return
			case e.Type == watch.Bookmark:
				mark := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: e.ResourceVersion}}
				if e.InitialEventsEnd {
					mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				}
				part = w.frame(watch.Bookmark, podKind, w.object(mark))
			default:
				part = w.frame(e.Type, podKind, w.object(e.Object))
			}
			if first = false; !yield(part, nil) {
				return
			}
		}
	}
}

// garbled is an event that cannot be used.
func (w *wire) garbled(name string) []byte {
	p := podOf(name, "@")
	switch w.spoilt % 3 {
	case 0:
		w.spoilt++
		return w.frame("STRANGE", podKind, w.object(p))
	case 1:
		if w.spoilt++; !w.json {
			return w.frame(watch.Added, metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, w.object(p))
		}
	}
	return w.frame(watch.Added, podKind, w.spoiled(p))
}

// spoiled is an object that cannot be decoded, although its name can.
func (w *wire) spoiled(p *corev1.Pod) []byte {
	w.spoilt++
	data := w.object(p)
	if w.json {
		text := strings.Replace(string(data), `"metadata":{`, `"metadata":{"labels":7,`, 1)
		// Without an apiVersion, a tree is none.
		return []byte(strings.Replace(text, `"apiVersion":"v1",`, "", 1))
	}
	return append(data, field(2, []byte{0xff})...)
}

func (w *wire) object(p *corev1.Pod) []byte {
	if !w.json {
		return must(p.Marshal())
	}
	p.TypeMeta = podKind
	data := must(json.Marshal(p))
	if version, _ := strconv.Atoi(p.ResourceVersion); w.trees {
		data = bytes.Replace(data, []byte(`"metadata":{`), []byte(`"metadata":{`+oddMetadata[version%len(oddMetadata)]), 1)
	}
	return data
}

// oddMetadata is of other types than the metadata's; a tree with it is accepted.
var oddMetadata = []string{
	``, `"generation":3.0,`, `"deletionTimestamp":"",`, `"ownerReferences":[null],`, `"finalizers":[1],`, `"managedFields":{},`,
	`"generateName":7,`, `"deletionGracePeriodSeconds":"x",`, `"ownerReferences":[{"uid":1}],`,
}

func (w *wire) frame(kind watch.EventType, head metav1.TypeMeta, object []byte) []byte {
	if w.json {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
	}
	event := append(field(1, []byte(kind)), field(2, field(1, envelope(head, object)))...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

// field is one field of a protobuf message.
func field(number byte, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...)
}

func envelope(head metav1.TypeMeta, message []byte) []byte {
	of := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: head.APIVersion, Kind: head.Kind}, Raw: message}
	return append([]byte("k8s\x00"), must(of.Marshal())...)
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
