package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
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
	jsonType     = "application/json"
	firstVersion = 1000
)

// serve prepares the objects of a measurement, and sends them to each watch list.
func serve(m measurement) (url string, stop func(), err error) {
	var body bytes.Buffer
	media := jsonType
	switch m.Form {
	case "pods":
		media = protobufType + ";stream=watch"
		err = framePods(&body, m.Objects)
	case "widgets":
		frameWidgets(&body, m.Objects)
	}
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			http.Error(w, "this server knows watches only", http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", media)
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			_, _ = w.Write(body.Bytes())
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

func framePods(body *bytes.Buffer, count int) error {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufType)
	if !ok {
		return fmt.Errorf("no serializer of %s", protobufType)
	}
	version := corev1.SchemeGroupVersion
	objects := scheme.Codecs.EncoderForVersion(info.Serializer, version)
	frames := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, version)
	encoder := restwatch.NewEncoder(streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(body), frames), objects)
	pods := world.Pods{PerSet: 50}
	for i := range count {
		if err := encoder.Encode(&watch.Event{Type: watch.Added, Object: pods.Pod(i, firstVersion+i, 0)}); err != nil {
			return err
		}
	}
	return encoder.Encode(&watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: world.Version(firstVersion + count),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}})
}

const ofWidget = `{"apiVersion":"example.com/v1","kind":"Widget",`

func frameWidgets(body *bytes.Buffer, count int) {
	for i := range count {
		widget := world.Widget(i, firstVersion+i, 0)
		fmt.Fprintf(body, `{"type":"ADDED","object":%s%s}`+"\n", ofWidget, strings.TrimPrefix(string(widget), "{"))
	}
	fmt.Fprintf(body, `{"type":"BOOKMARK","object":%s"metadata":{"resourceVersion":%q,"annotations":{%q:"true"}}}}`+"\n",
		ofWidget, world.Version(firstVersion+count), metav1.InitialEventsAnnotationKey)
}
