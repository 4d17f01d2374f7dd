package controllerruntime_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// A controller reads the Secrets that its objects name. The cache keeps these Secrets and no
// others, and a change of one reconciles the objects that have read it.
func ExampleNewReads() {
	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	apiserver.Serve(server, builtin.Of[*corev1.ConfigMap]())
	apiserver.Serve(server, builtin.Of[*corev1.Secret]())
	listener := httptest.NewServer(server)
	defer listener.Close()

	manager, err := ctrl.NewManager(&rest.Config{Host: listener.URL}, ctrl.Options{
		NewCache: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{})),
		Metrics:  metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	cluster := manager.GetClient()
	reconciled := make(chan string, 10)
	reads := controllerruntime.NewReads(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		var app corev1.ConfigMap
		if err := cluster.Get(ctx, request.NamespacedName, &app); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		var secret corev1.Secret
		err := cluster.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: app.Data["secret"]}, &secret)
		reconciled <- app.Name + " has " + string(secret.Data["password"])
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}))
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).WatchesRawSource(reads).Complete(reads); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Data: map[string]string{"secret": "db"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Data: map[string][]byte{"password": []byte("one")}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	for _, obj := range []client.Object{other, secret, app} {
		if err := cluster.Create(ctx, obj); err != nil {
			panic(err)
		}
	}
	fmt.Println(<-reconciled)
	secret.Data["password"] = []byte("two")
	if err := cluster.Update(ctx, secret); err != nil {
		panic(err)
	}
	fmt.Println(<-reconciled)
	refusal := strings.Split(cluster.List(ctx, &corev1.SecretList{}).Error(), ": ")
	fmt.Println(strings.Join(refusal[1:], "\n"))
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// shop has one
	// shop has two
	// list Secret
	// the kind is lean
	// of whole objects, the cache has only those that are read by name
	// list it as metav1.PartialObjectMetadataList, or take the kind out of Lean
	// ended: <nil>
}
