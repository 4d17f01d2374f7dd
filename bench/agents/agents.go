package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// The libraries.
const (
	nobody    = "nobody"
	tributary = "tributary"
	seldom    = "tributary, proven every 15 minutes"
	kubelet   = "tributary, the kubelet's /pods"
	clientGo  = "client-go informer"
	polling   = "a poll every 5 s"
	empty     = "the empty program"
	// With the sources of examples/kubelet-pods.
	manifested = "tributary, and a folder of manifests"
)

// silent keeps the ends of watches, at the end of a process, out of the tables.
var silent = sources.WithLogger(logr.Discard())

// follow has the pods of a node until ctx ends; synced is called once they are there.
func follow(ctx context.Context, library string, config *rest.Config, node string, synced func()) {
	if library == clientGo {
		cluster.Informers(ctx, config, node, false, synced)
		return
	}
	if library == empty {
		synced()
		<-ctx.Done()
		return
	}
	if library == kubelet { // asked often, so that the garbage of a poll is in its memory
		followKubelet(ctx, config.Host, node, synced, static.WithInterval(every))
		return
	}
	var options []reflector.Option
	if library == seldom {
		options = append(options, reflector.WithProof(15*time.Minute))
	}
	client := harness.Must(listwatch.NewRESTClient(config, corev1.SchemeGroupVersion))
	inputs := []sources.Option{silent, sources.APIServer(client, options...)}
	if library == manifested {
		folder := manifests()
		defer os.RemoveAll(folder)
		inputs = append(inputs, sources.File(folder))
	}
	consume(ctx, sources.New(node, inputs...), synced)
}

// followKubelet has the pods that the kubelet lists.
func followKubelet(ctx context.Context, host, node string, synced func(), options ...static.Option) {
	consume(ctx, sources.New(node, silent, sources.Kubelet(host+cluster.KubeletPath, options...)), synced)
}

// consume reads all updates.
func consume(ctx context.Context, pods *sources.Sources, synced func()) {
	go func() {
		select {
		case <-pods.Synced():
			synced()
		case <-ctx.Done():
		}
	}()
	go func() {
		for range pods.Updates() {
		}
	}()
	harness.Check(pods.Run(ctx))
}

// beAgents is the process of all agents of a row. It says when they are synced; polls are over
// then.
func beAgents(ctx context.Context, a agent) {
	cluster.Agents(ctx, a.Nodes, func(ctx context.Context, i int, synced func()) {
		if a.Library != polling {
			follow(ctx, a.Library, harness.Config(a.URL), cluster.Node(i), synced)
			return
		}
		for range a.Rounds {
			poll(ctx, a.URL, cluster.Node(i))
		}
		synced()
	}, func() []any { return []any{"synced"} })
}

// poll asks for the pods of a node as a careful poller does: out of the server's cache, and as
// protobuf. It decodes nothing, since the cost of the server is measured.
func poll(ctx context.Context, url, node string) {
	harness.Discard(ctx, http.DefaultClient, url+"/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D"+node, "Accept", harness.Protobuf)
}

// beOne is the process of an agent of the first node. It says its memory some time after it is
// synced: all of it, and the anonymous part.
func beOne(ctx context.Context, a agent) {
	cluster.Agents(ctx, 1, func(ctx context.Context, _ int, synced func()) {
		follow(ctx, a.Library, harness.Config(a.URL), cluster.Node(0), synced)
	}, func() []any {
		time.Sleep(quiet)
		return []any{self.Memory("VmRSS"), self.Memory("RssAnon")}
	})
}

// quiet is the time until the memory of a first state has been given back.
const quiet = 8 * time.Second

// manifests is a new folder with a manifest.
func manifests() (folder string) {
	folder = harness.Must(os.MkdirTemp("", "agents-"))
	writeManifest(folder, "v1")
	return folder
}

func writeManifest(folder, image string) {
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system, uid: one, labels: {v: " + image + "}}\n" +
		"spec: {containers: [{name: main, image: etcd}]}\n"
	temporary := filepath.Join(folder, ".etcd.yaml")
	harness.Check(os.WriteFile(temporary, []byte(text), 0o600))
	harness.Check(os.Rename(temporary, filepath.Join(folder, "etcd.yaml")))
}
