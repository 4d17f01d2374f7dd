// Command security names the container of each process whose ID it reads, as eBPF tells it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
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
	who := lookup.New(pods, lookup.KeepEnded(time.Minute))
	go func() { check(who.Run(ctx)) }()
	check(pods.WaitSynced(ctx))
	containerID := regexp.MustCompile("[0-9a-f]{64}")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		groups, err := os.ReadFile(os.Getenv("PROC") + "/" + lines.Text() + "/cgroup")
		_, path, inPod := strings.Cut(string(groups), "/kubepods")
		if err != nil || !inPod { // it has ended, or is the node's own
			continue
		}
		path, _, _ = strings.Cut(path, "\n")
		id := containerID.FindString(path)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		pod := who.Wait(soon, lookup.Sight{ContainerID: id, Cgroup: path})
		cancel()
		if pod != nil {
			container, _ := who.Container(id)
			fmt.Println(lines.Text(), store.KeyOf(pod.Pod), container.Status.Name, container.Status.Image)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
