package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

const firstVersion = 1000

// kind is a table: objects of some form.
type kind struct {
	world.Kind
	title string
	// rows are those of these counts of objects; nil: all.
	rows []int
}

var kinds = []kind{
	{world.KindOf("Pod"), "pods of 8.2 KB", nil},
	{world.KindOf(world.VariedPod), "pods that differ in more", []int{3, 20, 110}},
	{world.KindOf("Pod of random strings"), "pods that do not repeat", []int{0, 3, 110, 1000, 10_000}},
	{world.KindOf("Secret"), "Secrets of 4 KB", []int{0, 3, 110, 1000, 10_000}},
}

func kindOf(name string) kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	return kinds[0]
}

// counts are those of the settings if they were asked for, or else those that have a row.
func (k kind) counts(s sizes) []int {
	if s.counts != nil {
		return s.counts
	}
	return slices.DeleteFunc(s.usual(), func(count int) bool { return k.rows != nil && !slices.Contains(k.rows, count) })
}

// serve sends watch lists. The path of a client begins with the number of its kind, and of the
// objects in each namespace; namespaces are numbers.
func serve() (url string) {
	return harness.Serving{TLS: true, Streams: 1000}.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// /kind/count/api/v1/namespaces/ns/resource
		parts := strings.Split(r.URL.Path, "/")
		count, _ := strconv.Atoi(parts[2])
		if parts[1] == "program" {
			serveProgram(w, r, count)
			return
		}
		number, _ := strconv.Atoi(parts[1])
		namespace, _ := strconv.Atoi(parts[6])
		kinds[number].state(namespace, count).Send(w, r, nil)
	}))
}

// state is the first state of a namespace.
func (k kind) state(namespace, count int) world.State {
	items := func(yield func([]byte) bool) {
		for _, i := range k.Order(namespace*count, count) {
			obj := k.Object(i, firstVersion+i, 0)
			obj.SetNamespace(fmt.Sprint(namespace))
			if !yield(harness.Must(obj.Marshal())) {
				return
			}
		}
	}
	return world.State{Codec: world.CodecOf(k.Name, 50, world.Protobuf), Items: items,
		Version: world.Version(firstVersion + namespace*count + count), Apart: true}
}
