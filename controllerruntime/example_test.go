package controllerruntime_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// A program reads what it has just written, from the cache and not from the server.
func ExampleNewClient() {
	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	apiserver.Serve(server, builtin.Of[*corev1.ConfigMap]())
	listener := httptest.NewServer(server)
	defer listener.Close()

	manager, err := ctrl.NewManager(&rest.Config{Host: listener.URL}, ctrl.Options{
		NewCache:  controllerruntime.NewCache,
		NewClient: controllerruntime.NewClient,
		Metrics:   metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	manager.GetCache().WaitForCacheSync(ctx)

	maps := manager.GetClient()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := maps.Create(ctx, settings); err != nil {
		panic(err)
	}
	var found corev1.ConfigMapList
	for _, color := range []string{"red", "blue"} {
		settings.Data = map[string]string{"color": color}
		if err := maps.Update(ctx, settings); err != nil {
			panic(err)
		}
		if err := maps.List(ctx, &found); err != nil {
			panic(err)
		}
		fmt.Println(found.Items[0].Data["color"])
	}
	if err := maps.DeleteAllOf(ctx, settings, client.InNamespace("default")); err != nil {
		panic(err)
	}
	if err := maps.List(ctx, &found); err != nil {
		panic(err)
	}
	fmt.Println(len(found.Items), "left")
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// red
	// blue
	// 0 left
	// ended: <nil>
}
