// Command flows names the workload of each IP address that it reads, as an exporter of flows does.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/store"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)
	ctx := context.Background()
	pods := sources.New(os.Getenv("NODE_NAME"), sources.APIServer(client))
	who := lookup.New(pods, lookup.Owners(client), lookup.KeepEnded(5*time.Minute))
	go func() { check(who.Run(ctx)) }()
	check(pods.WaitSynced(ctx))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		address, err := netip.ParseAddr(lines.Text())
		check(err)
		pod := who.ByIP(address) // no lock, no allocation, no request
		if pod == nil {
			fmt.Println(address, "is no pod of this node")
			continue
		}
		owner, known := who.Owner(pod.Pod) // such as its Deployment
		fmt.Println(address, store.KeyOf(pod.Pod), owner.Kind, owner.Name, known)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
