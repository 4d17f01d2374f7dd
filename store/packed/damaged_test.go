package packed_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// fieldsOfMetadata are its JSON names, and damages what may stand there in place of a good value.
var (
	fieldsOfMetadata = []string{
		"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields", "unknown",
	}
	damages = []string{
		`null`, `true`, `1`, `-1`, `3.0`, `1e2`, `99999999999999999999`, `""`, `"x"`, `"2026-11-28T00:00:00Z"`, `{}`, `[]`, `[null]`, `[1]`, `[{}]`, `["x"]`,
		`{"n":1}`, `{"n":null}`, `{"n":"x"}`, `{"n":"x","n":"y"}`, `[{"uid":1}]`, `[{"name":"x","controller":"yes"}]`, `[{"manager":1}]`, `[{"fieldsV1":1}]`,
		`[{"manager":"m","time":""}]`, `"é\u00e9"`,
	}
)

// withDamage is an object whose metadata has other values in some fields.
func withDamage(damage map[string]string) string {
	fields := map[string]string{"name": `"web"`, "namespace": `"shop"`, "uid": `"u"`, "resourceVersion": `"7"`, "labels": `{"app":"web"}`}
	for field, value := range damage {
		fields[field] = value
	}
	var members []string
	for field, value := range fields {
		members = append(members, fmt.Sprintf("%q:%s", field, value))
	}
	return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{` + strings.Join(members, ",") + `},"spec":{"node":"a"}}`
}

// answering is a server whose lists have one object.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	body := `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[` + string(a) + `]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// read is what a store has of the list of one source: nil if the source refuses the object.
func read[T store.Object](t *testing.T, source *listwatch.ListWatch[T], into store.Store[T]) (refused error) {
	list := source.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, into.Replace(func(yield func(T, error) bool) {
		for obj, err := range list.Items {
			if err != nil {
				require.ErrorAs(t, err, new(*listwatch.DecodeError))
				refused = err
				continue
			}
			if !yield(obj, nil) {
				return
			}
		}
	}, store.At("9")))
	return refused
}

// metadata is what each method of an object says of it.
func metadata(obj store.Object) map[string]any {
	all := map[string]any{}
	of := reflect.TypeFor[metav1.Object]()
	for i := range of.NumMethod() {
		if name := of.Method(i).Name; strings.HasPrefix(name, "Get") {
			all[name] = reflect.ValueOf(obj).MethodByName(name).Call(nil)[0].Interface()
		}
	}
	all["kind"] = obj.GetObjectKind().GroupVersionKind()
	return all
}

// TestDamagedMetadata: whatever stands in the metadata of an object without a Go type, each form of
// it is accepted or refused alike. The methods of one that is accepted say what apimachinery's own
// do, and so do indexes and selections.
func TestDamagedMetadata(t *testing.T) {
	var forms []map[string]string
	for _, field := range fieldsOfMetadata {
		for _, value := range damages {
			forms = append(forms, map[string]string{field: value})
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		form := map[string]string{}
		for range 2 + random.IntN(4) {
			form[fieldsOfMetadata[random.IntN(len(fieldsOfMetadata))]] = damages[random.IntN(len(damages))]
		}
		forms = append(forms, form)
	}
	packed.SetHot(0) // no decoded object answers in place of the bytes
	defer packed.SetHot(packed.DefaultHot)
	accepted := 0
	for _, form := range forms {
		document := withDamage(form)
		says := fmt.Sprintf("seed %d: %s", seed, document)
		if testDamaged(t, document, says) {
			accepted++
		}
	}
	require.Greater(t, accepted, len(forms)/2)
}

func metadataAtRest(s *packed.Store[*unstructured.Unstructured], key string) (store.Object, bool) {
	entry, ok := s.Entries().Get(key)
	if !ok {
		return nil, false
	}
	return entry.(store.Object), true
}

func testDamaged(t *testing.T, document, says string) (accepted bool) {
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://server.example", Transport: answering(document), QPS: -1},
		schema.GroupVersion{Group: "example.com", Version: "v1"})
	require.NoError(t, err)
	type tree = *unstructured.Unstructured
	source := listwatch.FromClient[unstructured.Unstructured](client, "widgets")
	byLabel, byField := store.ByLabel[tree]("app"), store.ByField[tree]("metadata.generateName")
	ofBytes, ofObjects := packed.New[unstructured.Unstructured](byLabel, byField), packed.New[unstructured.Unstructured]()
	interned, plain := store.NewIndexer[tree](), store.NewIndexer[tree]()
	refused := read(t, source, store.Store[tree](interned))
	for _, err := range []error{
		read(t, listwatch.FromClient[unstructured.Unstructured](client, "widgets", listwatch.WithoutSharing()), store.Store[tree](plain)),
		read(t, source, store.Store[tree](ofObjects)),
		read(t, source.Encoded(), ofBytes.Encoded()),
	} {
		require.Equal(t, refused == nil, err == nil, says)
	}
	judge := unstructured.Unstructured{}
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &judge.Object))
	if refused != nil {
		require.Empty(t, judge.GetName(), says)
		return false
	}
	want, key := metadata(&judge), store.KeyOf(&judge)
	for name, entry := range map[string]func() (store.Object, bool){
		"interned":       func() (store.Object, bool) { obj, ok := interned.Get(key); return obj, ok },
		"plain":          func() (store.Object, bool) { obj, ok := plain.Get(key); return obj, ok },
		"packed bytes":   func() (store.Object, bool) { return metadataAtRest(ofBytes, key) },
		"packed objects": func() (store.Object, bool) { return metadataAtRest(ofObjects, key) },
		"opened":         func() (store.Object, bool) { obj, ok := ofBytes.Get(key); return obj, ok },
	} {
		obj, ok := entry()
		require.True(t, ok, "%s: %s", name, says)
		require.Equal(t, want, metadata(obj), "%s: %s", name, says)
	}
	for _, value := range []string{"web", "x", ""} {
		_, labelled := judge.GetLabels()["app"]
		require.Equal(t, labelled && judge.GetLabels()["app"] == value, byLabel.Len(ofBytes.Snapshot(), value) == 1, says)
	}
	require.Equal(t, 1, byField.Len(ofBytes.Snapshot(), judge.GetGenerateName()), says)
	selected := 0
	for range ofBytes.Snapshot().Select("", labels.SelectorFromSet(labels.Set{"n": "x"})) {
		selected++
	}
	require.Equal(t, judge.GetLabels()["n"] == "x", selected == 1, says)
	_, err = json.Marshal(judge.Object)
	require.NoError(t, err)
	return true
}
