package etcd_test

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
)

// A copy of the pods that an etcd stores, which any number of watchers can follow.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, closeAll, err := etcdWithPods("web-0", "web-1")
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	pods, err := watchcache.NewCache(watchcache.Pods())
	if err != nil {
		log.Fatal(err)
	}
	r := reflector.New(etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	if err := r.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	for event, err := range pods.Watch(ctx, metav1.ListOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		if fmt.Println(event.Type, event.Object.Name); event.Object.Name == "web-1" {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// ADDED web-0
	// ADDED web-1
}

// etcdWithPods is an etcd in this process, on free ports and a folder of its own.
func etcdWithPods(names ...string) (client *clientv3.Client, closeAll func(), err error) {
	config := embed.NewConfig()
	if config.Dir, err = os.MkdirTemp("", "etcd"); err != nil {
		return nil, nil, err
	}
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, nil, err
	}
	<-server.Server.ReadyNotify()
	client, err = clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}, Logger: zap.NewNop()})
	for _, name := range names {
		value := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default"}}`, name)
		if _, putErr := client.Put(context.Background(), "/registry/pods/default/"+name, value); putErr != nil {
			err = putErr
		}
	}
	return client, func() { _ = client.Close(); server.Close(); _ = os.RemoveAll(config.Dir) }, err
}
