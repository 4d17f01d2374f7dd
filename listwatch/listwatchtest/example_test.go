package listwatchtest_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// A test of code that uses a clientset to read the names of a node's pods.
func Example() {
	test := func(t testing.TB) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		client := kubernetes.NewForConfigOrDie(pods.Server().Config())

		pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		})
		pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}})
		pods.Fail(listwatchtest.List, apierrors.NewServiceUnavailable("back in a moment")) // once

		for range 2 {
			list, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{
				FieldSelector: "spec.nodeName=node-1",
			})
			if err != nil {
				fmt.Println("no list:", err)
				continue
			}
			fmt.Println(len(list.Items), "pod:", list.Items[0].Name)
		}
		for _, r := range pods.Server().Requests() {
			fmt.Println(r)
		}
	}
	run(test)
	// Output:
	// no list: back in a moment
	// 1 pod: web-0
	// list pods fields=spec.nodeName=node-1
	// list pods fields=spec.nodeName=node-1
}

// run stands in for go test, which passes a t of its own.
func run(test func(testing.TB)) {
	var t stand
	defer t.end()
	test(&t)
}

type stand struct {
	testing.TB
	cleanups []func()
}

func (*stand) Helper()             {}
func (*stand) Failed() bool        { return false }
func (s *stand) Cleanup(do func()) { s.cleanups = append(s.cleanups, do) }
func (s *stand) end() {
	for _, do := range s.cleanups {
		do()
	}
}
