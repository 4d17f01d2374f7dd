// Command cni answers on a socket which networks a pod asks for, as a CNI plugin does:
//
//	curl --unix-socket $SOCKET "http://cni/add?namespace=shop&name=web-1&uid=…"
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)
	pods := sources.New(os.Getenv("NODE_NAME"), sources.File(os.Getenv("MANIFESTS")),
		sources.APIServer(client).Optional(5*time.Second)) // which may be a static pod of this node
	who := lookup.New(pods)
	go func() { check(who.Run(context.Background())) }()
	check(pods.WaitSynced(context.Background()))
	http.HandleFunc("/add", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second) // the kubelet tries again
		defer cancel()
		// The mirror of a static pod, with the kubelet's UID, comes after the ADD.
		pod := who.ByName(r.FormValue("namespace"), r.FormValue("name"))
		if pod == nil || pod.PodFrom != sources.FileSource {
			pod = who.Wait(ctx, lookup.Sight{UID: types.UID(r.FormValue("uid"))})
		}
		if pod == nil {
			http.Error(w, "no source has the pod yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, pod.Pod.Annotations["k8s.v1.cni.cncf.io/networks"])
	})
	listener, err := net.Listen("unix", os.Getenv("SOCKET"))
	check(err)
	check(http.Serve(listener, nil))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
