package sources_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/sources"
)

// A folder of manifests: what is there at the start, an edit, and a removal.
func Example() {
	folder, err := os.MkdirTemp("", "manifests-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "web.yaml")
	write := func(image string) {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: " + image + "}]}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	write("nginx:1.27")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := sources.New("node-1", sources.File(folder))
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()

	changes := []func(){func() { write("nginx:1.28") }, func() {}, func() { os.Remove(path) }, cancel}
	for update := range pods.Updates() {
		for _, pod := range update.Pods {
			fmt.Println(update.Op, update.Source, pod.Name, pod.Spec.Containers[0].Image)
		}
		changes[0]()
		changes = changes[1:]
	}
	fmt.Println("ended:", <-ended)
	// Output:
	// ADD file web-node-1 nginx:1.27
	// REMOVE file web-node-1 nginx:1.27
	// ADD file web-node-1 nginx:1.28
	// REMOVE file web-node-1 nginx:1.28
	// ended: <nil>
}

// The pods of a node from all three places. The API server here is one of the package watchcache.
func ExampleNew() {
	api, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	_, err = apiserver.Serve(api, builtin.Pods()).Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/pods.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "PodList", "items": []}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer api.Close()
	client, err := listwatch.NewRESTClient(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods := sources.New("node-1",
		sources.APIServer(client),
		sources.File("/does/not/exist/yet"),
		sources.HTTP(server.URL+"/pods.json"))
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()

	for synced := false; !synced; {
		select {
		case update := <-pods.Updates():
			fmt.Println(update.Op, update.Source, len(update.Pods))
		case <-pods.Synced():
			synced = true
		}
	}
	cancel()
	fmt.Println("ended:", <-ended)
	http.DefaultClient.CloseIdleConnections()
	// Unordered output:
	// ADD api 1
	// ADD file 0
	// ADD http 0
	// ended: <nil>
}
