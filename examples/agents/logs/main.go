// Command logs joins each line below /var/log/pods with its pod and workload, as a log agent does.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
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
	ctx := context.Background()
	pods := sources.New(os.Getenv("NODE_NAME"), sources.APIServer(client))
	who := lookup.New(pods, lookup.Owners(client), lookup.KeepEnded(2*time.Minute))
	go func() { check(who.Run(ctx)) }()
	check(pods.WaitSynced(ctx))
	for offsets := map[string]int64{}; ; time.Sleep(time.Second) {
		paths, _ := filepath.Glob(os.Getenv("LOGS") + "/*_*_*/*/*.log")
		for _, path := range paths {
			folder := filepath.Base(filepath.Dir(filepath.Dir(path)))
			pod := who.ByUID(types.UID(folder[strings.LastIndex(folder, "_")+1:]))
			file, err := os.Open(path)
			if pod == nil || err != nil {
				continue
			}
			data, _ := io.ReadAll(io.NewSectionReader(file, offsets[path], 1<<20))
			file.Close()
			data = data[:bytes.LastIndexByte(data, '\n')+1] // whole lines
			offsets[path] += int64(len(data))
			owner, _ := who.WaitOwner(ctx, pod.Pod) // such as its Deployment
			for line := range bytes.Lines(data) {
				fmt.Printf("%s/%s of %s %s: %s", pod.Pod.Namespace, pod.Pod.Name, owner.Kind, owner.Name, line)
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
