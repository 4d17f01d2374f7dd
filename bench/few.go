package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// fewCollections is the number of small collections of one process.
const fewCollections = 300

// fewPods is the task of one process.
type fewPods struct {
	Library string
	Each    int
}

// measureFewPods prints the cost of many small collections: their objects and stores, without
// reflectors.
func measureFewPods(ctx context.Context, s settings) {
	table := harness.Table{Lead: "pods in each", Columns: []harness.Column{
		harness.Col("packed B", "%.0f", "packed.live/each"), harness.Col("interned B", "%.0f", "tributary.live/each"),
		harness.Col("client-go B", "%.0f", "reflector.live/each"), harness.Col("packed / client-go", "%.3f", "packed.live/reflector.live"),
		harness.Col("CPU us: packed", "%.0f", "packed.cpu*1e6/each"), harness.Col("interned", "%.0f", "tributary.cpu*1e6/each"),
		harness.Col("client-go", "%.0f", "reflector.cpu*1e6/each"),
	}}
	table.Begin(fmt.Sprintf("at rest: %d collections of few pods", fewCollections),
		"The heap of a collection: its objects, its store and its source, without a reflector. "+s.repetitions()+".")
	for _, each := range []int{0, 1, 3, 10, 50} {
		libraries := []string{atRest, interned, clientGoReflector}
		medians := harness.ByTurns(s.Repeat, libraries, func(library string) harness.Figures {
			return harness.Measure(ctx, "few", fewPods{library, each})
		})
		f := harness.Figures{"each": fewCollections}
		for i, library := range libraries {
			f = f.With(library+".", medians[i])
		}
		table.Row(f, each)
	}
}

// fillFew fills collections of a few pods each.
func fillFew(ctx context.Context, few fewPods) harness.Figures {
	client := harness.RESTClient(&rest.Config{Host: "http://few.example", QPS: -1, Transport: bodiesOf(few.Each),
		ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf}}, corev1.SchemeGroupVersion)
	fill := map[string]func(namespace string) any{
		atRest: func(namespace string) any {
			source, st := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace(namespace)).Encoded(), packed.New[corev1.Pod]()
			return []any{source, filled(ctx, source, st.Encoded())}
		},
		interned: func(namespace string) any {
			source := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace(namespace))
			return []any{source, filled(ctx, source, store.NewIndexer[*corev1.Pod]())}
		},
		clientGoReflector: func(namespace string) any {
			var list corev1.PodList
			harness.Check(client.Get().Namespace(namespace).Resource("pods").Do(ctx).Into(&list))
			st := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			for i := range list.Items {
				obj := list.Items[i] // not kept by the list's array
				_ = st.Add(&obj)
			}
			return st
		},
	}[few.Library]
	fill(strconv.Itoa(fewCollections)) // makes the state of the process
	held := make([]any, fewCollections)
	before, used := harness.Live(), harness.CPU()
	for i := range held {
		held[i] = fill(strconv.Itoa(i))
	}
	f := harness.Figures{"cpu": (harness.CPU() - used).Seconds(), "live": harness.Live() - before}
	runtime.KeepAlive(held)
	runtime.KeepAlive(client) // and so the bodies
	return f
}

func filled[T store.Object](ctx context.Context, source *listwatch.ListWatch[T], st store.Store[T]) store.Store[T] {
	list := source.List(ctx, metav1.ListOptions{})
	harness.Check(st.Replace(list.Items, func() string { return list.Meta().ResourceVersion }))
	return st
}

// bodiesOf answers each LIST of a namespace with pods of its own.
func bodiesOf(each int) http.RoundTripper {
	codec := world.CodecOf("", 50, world.Protobuf)
	all := make([][]byte, fewCollections+1)
	for number := range all {
		items := make([][]byte, each)
		for i := range items {
			items[i] = codec.Object(number*each+i, number*each+i, 0)
		}
		var body bytes.Buffer
		world.State{Codec: codec, Items: slices.Values(items), Version: world.Version(firstVersion)}.List(func(part []byte) { body.Write(part) })
		all[number] = body.Bytes()
	}
	return transport(func(r *http.Request) []byte {
		parts := strings.Split(r.URL.Path, "/")
		number, _ := strconv.Atoi(parts[len(parts)-2])
		return all[number]
	})
}

type transport func(*http.Request) []byte

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {harness.Protobuf}}, Body: io.NopCloser(bytes.NewReader(t(r))), Request: r}, nil
}
