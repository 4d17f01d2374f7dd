package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/tributary-go/tributary/bench/world"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	firstVersion = 1000
)

// kind is a table: objects of some form.
type kind struct {
	world.Kind
	title string
	// rows are those of these counts of objects; nil: all.
	rows []int
}

var kinds = []kind{
	{world.Pods{PerSet: 50}.Kind("Pod"), "pods of 8.2 KB", nil},
	{builtin(world.VariedPod), "pods that differ in more", []int{3, 20, 110}},
	{builtin("Pod of random strings"), "pods that do not repeat", []int{0, 3, 110, 1000, 10_000}},
	{builtin("Secret"), "Secrets of 4 KB", []int{0, 3, 110, 1000, 10_000}},
}

func builtin(name string) world.Kind {
	kind, _ := world.KindOf(name)
	return kind
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
func (k kind) counts(s settings) []int {
	if s.counts != nil {
		return s.counts
	}
	return slices.DeleteFunc(s.usual(), func(count int) bool { return k.rows != nil && !slices.Contains(k.rows, count) })
}

// serve sends watch lists. The path of a client begins with the number of its kind, and of the
// objects in each namespace; namespaces are numbers.
func serve() (url string, stop func(), err error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufType)
	if !ok {
		return "", nil, fmt.Errorf("no serializer of %s", protobufType)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("watch") != "true" {
			http.Error(w, "this server knows watches only", http.StatusNotImplemented)
			return
		}
		// /kind/count/api/v1/namespaces/ns/resource
		parts := strings.Split(r.URL.Path, "/")
		number, _ := strconv.Atoi(parts[1])
		count, _ := strconv.Atoi(parts[2])
		namespace, _ := strconv.Atoi(parts[6])
		w.Header().Set("Content-Type", protobufType+";stream=watch")
		if query.Get("sendInitialEvents") == "true" {
			if err := kinds[number].frame(w, info, namespace, count); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
	server.StartTLS()
	return server.URL, server.Close, nil
}

// frame writes the first state of a namespace.
func (k kind) frame(w http.ResponseWriter, info runtime.SerializerInfo, namespace, count int) error {
	objects := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	frames := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion)
	var body bytes.Buffer
	encoder := restwatch.NewEncoder(streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(&body), frames), objects)
	for _, i := range k.Order(namespace*count, count) {
		obj := k.Object(i, firstVersion+i, 0)
		obj.SetNamespace(fmt.Sprint(namespace))
		if err := encoder.Encode(&watch.Event{Type: watch.Added, Object: obj.(runtime.Object)}); err != nil {
			return err
		}
		if _, err := body.WriteTo(w); err != nil {
			return err
		}
	}
	last := metav1.ObjectMeta{ResourceVersion: world.Version(firstVersion + namespace*count + count), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	var bookmark runtime.Object = &corev1.Pod{ObjectMeta: last}
	if k.Resource == "secrets" {
		bookmark = &corev1.Secret{ObjectMeta: last}
	}
	if err := encoder.Encode(&watch.Event{Type: watch.Bookmark, Object: bookmark}); err != nil {
		return err
	}
	_, err := body.WriteTo(w)
	return err
}
