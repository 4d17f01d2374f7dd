package apiserver_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func Example() {
	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	pods := apiserver.Serve(server, builtin.Pods())
	listener := httptest.NewServer(server)
	defer listener.Close()

	_, err = pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	})
	if err != nil {
		panic(err)
	}

	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: listener.URL})
	list, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{
		FieldSelector: "spec.nodeName=node-1",
	})
	if err != nil {
		panic(err)
	}
	for _, p := range list.Items {
		fmt.Println(p.Namespace, p.Name, "at version", p.ResourceVersion)
	}
	// Output: default web-0 at version 2
}
