package refs_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func Example() {
	clientset, end := cluster() // a program has kubernetes.NewForConfig instead
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	create(ctx, clientset, "tls", "db", "of-another-program")

	secrets := refs.New(refs.FromClient[corev1.Secret](clientset.CoreV1().RESTClient(), "secrets"))
	ended := make(chan error)
	go func() { ended <- secrets.Run(ctx) }()

	secrets.SetOwner("pod-1", refs.In("shop", "tls", "missing"))
	obj, err := secrets.Get(ctx, "shop", "tls") // fresh, or says why not
	fmt.Printf("tls: %s, %v\n", obj.Data["value"], err)
	_, err = secrets.Get(ctx, "shop", "missing")
	fmt.Println("missing:", apierrors.IsNotFound(err))
	_, err = secrets.Get(ctx, "shop", "db")
	fmt.Println(err)

	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// tls: value of tls, <nil>
	// missing: true
	// refs: shop/db: no owner refers to it: call SetOwner or AddNames first
	// ended: <nil>
}

// cluster is a server with all built-in kinds.
func cluster() (kubernetes.Interface, func()) {
	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	builtin.Serve(server)
	listener := httptest.NewServer(server)
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL})
	if err != nil {
		panic(err)
	}
	return clientset, func() {
		server.Close()
		listener.Close()
	}
}

func create(ctx context.Context, clientset kubernetes.Interface, names ...string) {
	_, err := clientset.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	for _, name := range names {
		if err == nil {
			_, err = clientset.CoreV1().Secrets("shop").Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"value": "value of " + name},
			}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		panic(err)
	}
}
