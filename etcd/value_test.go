package etcd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
)

const widgets = "/registry/example.com/widgets/"

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "ns", "labels": map[string]any{"app": "a-label-that-all-have"}},
		"spec":     map[string]any{"size": int64(3), "ratio": 0.5, "parts": []any{"one", "two"}},
	}}
}

// TestCustomResources: JSON and CBOR give the same documents, each with its own version.
func TestCustomResources(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	asJSON, err := widget("a").MarshalJSON()
	require.NoError(t, err)
	var asCBOR bytes.Buffer
	scheme := runtime.NewScheme()
	require.NoError(t, cbor.NewSerializer(scheme, scheme).Encode(widget("b"), &asCBOR))
	revisions := []int64{
		putValue(t, client, widgets+"ns/a", asJSON),
		putValue(t, client, widgets+"ns/b", asCBOR.Bytes()),
	}
	for _, options := range [][]etcd.Option{nil, {etcd.WithoutSharing()}} {
		list, _ := read(t, etcd.New[unstructured.Unstructured](client, widgets, options...).List(t.Context(), metav1.ListOptions{}))
		require.Len(t, list, 2)
		for i, name := range []string{"a", "b"} {
			want := widget(name)
			want.SetResourceVersion(at(revisions[i]))
			require.Equal(t, want, list[i])
		}
	}
	metadata, _ := read(t, etcd.New[metav1.PartialObjectMetadata](client, widgets).List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, "Widget", metadata[1].Kind)
	require.Equal(t, "a-label-that-all-have", metadata[1].Labels["app"])
}

// TestCBORIsWhatTheAPIMachineryReads: also where JSON says less, of bytes that are not UTF-8 and of
// whole floats.
func TestCBORIsWhatTheAPIMachineryReads(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	written := widget("a")
	written.Object["spec"] = map[string]any{"name": "\x810", "whole": 1.0}
	var value bytes.Buffer
	scheme := runtime.NewScheme()
	serializer := cbor.NewSerializer(scheme, scheme)
	require.NoError(t, serializer.Encode(written, &value))
	revision := putValue(t, client, widgets+"ns/a", value.Bytes())
	var want unstructured.Unstructured
	_, _, err := serializer.Decode(value.Bytes(), nil, &want)
	require.NoError(t, err)
	require.Equal(t, "\x810", want.Object["spec"].(map[string]any)["name"])
	want.SetResourceVersion(at(revision))
	got, _ := read(t, etcd.New[unstructured.Unstructured](client, widgets).List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, []*unstructured.Unstructured{&want}, got)
}

// TestPodsAreWhatWasWritten: with and without sharing, typed objects have all their fields, and
// neither kind nor apiVersion.
func TestPodsAreWhatWasWritten(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	var want []*corev1.Pod
	for i := range 50 {
		p := pod(fmt.Sprintf("pod-%02d", i), labelled("app", "web"))
		p.Spec.Tolerations = []corev1.Toleration{{Key: "a-long-key-of-a-taint", Operator: corev1.TolerationOpExists}}
		p.Status.PodIP = fmt.Sprint("10.0.0.", i)
		p.ResourceVersion = at(put(t, client, p))
		want = append(want, p)
	}
	for _, options := range [][]etcd.Option{nil, {etcd.WithoutSharing()}} {
		list, _ := read(t, etcd.New[corev1.Pod](client, pods, options...).List(t.Context(), metav1.ListOptions{}))
		require.Equal(t, want, list)
	}
}

// damage is a value that cannot be an object, and what an error says of it.
var damage = []struct{ name, value, says string }{
	{"encrypted", "k8s:enc:aescbc:v1:key-2024:s3cret", `provider "aescbc", key "key-2024"`},
	{"sealed", "k8s:enc:kms:v2:my-vault:s3cret", `provider "kms", key "my-vault"`},
	{"odd", "k8s:enc:s3cret", `provider "unknown"`},
	{"torn", "k8s\x00\x0a\xffs3cret", "malformed protobuf"},
	{"garbage", "\x01\x02s3cret", "neither protobuf nor JSON nor CBOR"},
	{"empty", "", "neither protobuf nor JSON nor CBOR"},
	{"syntax", `{"kind":"Pod","metadata":{"name":"s3cret`, "malformed JSON"},
	{"mismatch", `{"kind":"Pod","apiVersion":"v1","spec":"s3cret"}`, "a value that its type does not take"},
	{"kindless", `{"metadata":{"name":"kindless","namespace":"ns"}}`, "has no kind"},
	{"other-kind", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"other-kind","namespace":"ns"}}`, "a Secret, not a Pod"},
	{"other-name", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"s3cret","namespace":"ns"}}`, "another object's than its key says"},
	{"cbor", "\xd9\xd9\xf7\xffs3cret", "malformed"},
}

// TestOneCorruptValueCostsOneObject: it is named, in lists and watches, no text of it is quoted,
// and its deletion is told.
func TestOneCorruptValueCostsOneObject(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	source := etcd.New[corev1.Pod](client, pods)
	for _, d := range damage {
		t.Run(d.name, func(t *testing.T) {
			before := put(t, client, pod(d.name))
			good := put(t, client, pod("good"))
			putValue(t, client, pods+"ns/"+d.name, []byte(d.value))
			requireNamed := func(err error) {
				t.Helper()
				var unusable *listwatch.DecodeError
				require.ErrorAs(t, err, &unusable)
				require.Equal(t, "ns/"+d.name, unusable.Object)
				require.ErrorContains(t, err, d.says)
				require.NotContains(t, err.Error(), "s3cret")
				require.NotContains(t, err.Error(), pods)
			}
			var listed []*corev1.Pod
			var errs []error
			for p, err := range source.List(t.Context(), metav1.ListOptions{}).Items {
				if err == nil {
					listed = append(listed, p)
				} else {
					errs = append(errs, err)
				}
			}
			require.Equal(t, []string{"good"}, names(listed))
			require.Len(t, errs, 1)
			requireNamed(errs[0])

			w := watchFrom(t, source, from(before))
			require.Equal(t, fmt.Sprint("ADDED good@", good), strings.Replace(seen(w.next()), "MODIFIED", "ADDED", 1))
			requireNamed(w.failure())
			deletion := remove(t, client, pods+"ns/"+d.name)
			e := w.next()
			require.Equal(t, fmt.Sprintf("DELETED %s@%d", d.name, deletion), seen(e))
			require.Equal(t, watch.Deleted, e.Type)
			require.Equal(t, "ns", e.Object.Namespace)
		})
	}
}

// TestStoredVersion: nothing is converted, so that a value of another version than the Go type's is
// refused on request.
func TestStoredVersion(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	old, err := inProtobuf("apps/v1beta1", "Deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "old"}})
	require.NoError(t, err)
	putValue(t, client, "/registry/deployments/ns/old", old)
	_, _, err = tryRead(etcd.New[appsv1.Deployment](client, "/registry/deployments/", etcd.WithAPIVersion("apps/v1")).
		List(t.Context(), metav1.ListOptions{}))
	require.ErrorContains(t, err, "stored as apps/v1beta1, not as apps/v1")
}

// TestProtobufIsNoDocument: what only generated code can read is said to need its Go type.
func TestProtobufIsNoDocument(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	put(t, client, pod("a"))
	_, _, err := tryRead(etcd.New[unstructured.Unstructured](client, pods).List(t.Context(), metav1.ListOptions{}))
	require.ErrorContains(t, err, "read it as its own type")
}
