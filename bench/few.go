package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// fewCollections is the number of small collections of one process.
const fewCollections = 300

// measureFewPods prints the cost of many small collections: their objects and stores, without
// reflectors.
func measureFewPods(ctx context.Context, s settings) error {
	fmt.Printf("\n### at rest: %d collections of few pods\n\nThe heap of a collection: its objects, its store and its source, without a reflector. %s.\n\n"+
		"| pods in each | packed B | interned B | client-go B | packed / client-go | CPU us: packed | interned | client-go |\n|---|---|---|---|---|---|---|---|\n", fewCollections, s.repetitions())
	for _, each := range []int{0, 1, 3, 10, 50} {
		var heap, used [3]float64
		for i, library := range []string{atRest, "tributary", "reflector"} {
			var all []figures
			for range s.repeat {
				cmd, err := s.start(ctx, "few", library, strconv.Itoa(each))
				if err != nil {
					return err
				}
				var f figures
				if err := output(cmd, &f); err != nil {
					return err
				}
				all = append(all, f)
			}
			heap[i] = median(all, func(f figures) float64 { return f.Live }) / fewCollections
			used[i] = median(all, func(f figures) float64 { return f.CPU }) / fewCollections * 1e6
		}
		fmt.Printf("| %d | %.0f | %.0f | %.0f | %.3f | %.0f | %.0f | %.0f |\n", each, heap[0], heap[1], heap[2], heap[0]/heap[2], used[0], used[1], used[2])
	}
	return nil
}

// measureFew fills collections of a few pods each, and prints their heap.
func measureFew(ctx context.Context, s settings, library, each string) error {
	count, err := strconv.Atoi(each)
	if err != nil {
		return err
	}
	bodies := s.bodies(count)
	config := &rest.Config{Host: "http://few.example", QPS: -1, Transport: bodies, ContentConfig: rest.ContentConfig{
		ContentType: world.Protobuf.ContentType(), GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}, APIPath: "/api"}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return err
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
	}[library]
	// The first one makes the state of the process.
	if _, err := fill(strconv.Itoa(fewCollections)); err != nil {
		return err
	}
	held := make([]any, fewCollections)
	before, used := live(), cpu()
	for i := range held {
		if held[i], err = fill(strconv.Itoa(i)); err != nil {
			return err
		}
	}
	f := figures{CPU: (cpu() - used).Seconds(), Live: live() - before}
	runtime.KeepAlive(held)
	runtime.KeepAlive(client) // and so the bodies
	return json.NewEncoder(os.Stdout).Encode(f)
}

func filled[T store.Object](ctx context.Context, source *listwatch.ListWatch[T], st store.Store[T]) error {
	list := source.List(ctx, metav1.ListOptions{})
	return st.Replace(list.Items, func() string { return list.Meta().ResourceVersion })
}

// bodies answers each LIST of a namespace with pods of its own.
func (s settings) bodies(each int) http.RoundTripper {
	codec := world.CodecOf(s.kind, s.perSet, world.Protobuf)
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
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {world.Protobuf.ContentType()}}, Body: io.NopCloser(bytes.NewReader(t(r))), Request: r}, nil
}
