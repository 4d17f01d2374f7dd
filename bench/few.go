package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
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
func measureFewPods(ctx context.Context, s settings) error {
	table := harness.Table{Lead: "pods in each", Columns: []harness.Column{
		harness.Col("packed B", "%.0f", "packed.live/each"), harness.Col("interned B", "%.0f", "tributary.live/each"),
		harness.Col("client-go B", "%.0f", "reflector.live/each"), harness.Col("packed / client-go", "%.3f", "packed.live/reflector.live"),
		harness.Col("CPU us: packed", "%.0f", "packed.cpu*1e6/each"), harness.Col("interned", "%.0f", "tributary.cpu*1e6/each"),
		harness.Col("client-go", "%.0f", "reflector.cpu*1e6/each"),
	}}
	table.Begin(fmt.Sprintf("at rest: %d collections of few pods", fewCollections),
		"The heap of a collection: its objects, its store and its source, without a reflector. "+s.repetitions()+".")
	for _, each := range []int{0, 1, 3, 10, 50} {
		libraries := []string{atRest, "tributary", "reflector"}
		medians, err := harness.ByTurns(s.Repeat, libraries, func(library string) (harness.Figures, error) {
			return harness.Measure(ctx, "few", fewPods{library, each})
		})
		if err != nil {
			return err
		}
		f := harness.Figures{"each": fewCollections}
		for i, library := range libraries {
			f = f.With(library+".", medians[i])
		}
		table.Row(f, each)
	}
	return nil
}

// fillFew fills collections of a few pods each.
func fillFew(ctx context.Context, few fewPods) (harness.Figures, error) {
	bodies := bodiesOf(few.Each)
	config := &rest.Config{Host: "http://few.example", QPS: -1, Transport: bodies, ContentConfig: rest.ContentConfig{
		ContentType: harness.Protobuf, GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}, APIPath: "/api"}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	fill := map[string]func(namespace string) (any, error){
		atRest: func(namespace string) (any, error) {
			source, st := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace(namespace)).Encoded(), packed.New[corev1.Pod]()
			return []any{source, st}, filled(ctx, source, st.Encoded())
		},
		"tributary": func(namespace string) (any, error) {
			source, st := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace(namespace)), store.NewIndexer[*corev1.Pod]()
			return []any{source, st}, filled(ctx, source, st)
		},
		"reflector": func(namespace string) (any, error) {
			var list corev1.PodList
			err := client.Get().Namespace(namespace).Resource("pods").Do(ctx).Into(&list)
			st := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			for i := range list.Items {
				obj := list.Items[i] // not kept by the list's array
				_ = st.Add(&obj)
			}
			return st, err
		},
	}[few.Library]
	// The first one makes the state of the process.
	if _, err := fill(strconv.Itoa(fewCollections)); err != nil {
		return nil, err
	}
	held := make([]any, fewCollections)
	before, used := harness.Live(), harness.CPU()
	for i := range held {
		if held[i], err = fill(strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	f := harness.Figures{"cpu": (harness.CPU() - used).Seconds(), "live": harness.Live() - before}
	runtime.KeepAlive(held)
	runtime.KeepAlive(client) // and so the bodies
	return f, nil
}

func filled[T store.Object](ctx context.Context, source *listwatch.ListWatch[T], st store.Store[T]) error {
	list := source.List(ctx, metav1.ListOptions{})
	return st.Replace(list.Items, func() string { return list.Meta().ResourceVersion })
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
		codec.List(items, world.Version(firstVersion), func(part []byte) { body.Write(part) })
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
