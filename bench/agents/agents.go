package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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

func configOf(url string) *rest.Config {
	return &rest.Config{
		Host: url, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: harness.Protobuf, AcceptContentTypes: harness.Protobuf + ",application/json"},
	}
}

// follow has the pods of a node until ctx ends; synced is called once they are there.
func follow(ctx context.Context, library string, config *rest.Config, node string, synced func()) error {
	switch library {
	case empty:
		synced()
		<-ctx.Done()
		return nil
	case tributary, seldom, manifested:
		client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
		if err != nil {
			return err
		}
		var options []reflector.Option
		if library == seldom {
			options = append(options, reflector.WithProof(15*time.Minute))
		}
		inputs := []sources.Option{silent, sources.APIServer(client, options...)}
		if library == manifested {
			folder, err := manifests()
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			inputs = append(inputs, sources.File(folder))
		}
		return consume(ctx, sources.New(node, inputs...), synced)
	case kubelet: // asked often, so that the garbage of a poll is in its memory
		return followKubelet(ctx, config.Host, node, synced, static.WithInterval(every))
	case clientGo:
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}))
		pods := factory.Core().V1().Pods().Informer()
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
		factory.StartWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
			return ctx.Err()
		}
		synced()
		<-ctx.Done()
		factory.Shutdown()
		return nil
	}
	return fmt.Errorf("no library %q", library)
}

// followKubelet has the pods that the kubelet lists.
func followKubelet(ctx context.Context, host, node string, synced func(), options ...static.Option) error {
	return consume(ctx, sources.New(node, silent, sources.Kubelet(host+cluster.KubeletPath, options...)), synced)
}

// consume reads all updates.
func consume(ctx context.Context, pods *sources.Sources, synced func()) error {
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
	return pods.Run(ctx)
}

// beAgents is the process of all agents of a row. It says when they are synced; polls are over
// then.
func beAgents(ctx context.Context, a agent) error {
	ctx = self.UntilInputEnds(ctx)
	var ready, running sync.WaitGroup
	ready.Add(a.Nodes)
	for i := range a.Nodes {
		running.Go(func() {
			if a.Library == polling {
				for range a.Rounds {
					if err := poll(ctx, a.URL, cluster.Node(i)); err != nil {
						fmt.Fprintln(os.Stderr, err)
					}
				}
				ready.Done()
				return
			}
			if err := follow(ctx, a.Library, configOf(a.URL), cluster.Node(i), ready.Done); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	ready.Wait()
	fmt.Println("synced")
	<-ctx.Done()
	running.Wait()
	return nil
}

// poll asks for the pods of a node as a careful poller does: out of the server's cache, and as
// protobuf. It decodes nothing, since the cost of the server is measured.
func poll(ctx context.Context, url, node string) error {
	body, err := harness.Get(ctx, http.DefaultClient, url+"/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D"+node, "Accept", harness.Protobuf)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// beOne is the process of an agent of the first node. It says its memory some time after it is
// synced: all of it, and the anonymous part.
func beOne(ctx context.Context, a agent) error {
	ctx = self.UntilInputEnds(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- follow(ctx, a.Library, configOf(a.URL), cluster.Node(0), func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-ended:
		return err
	}
	time.Sleep(quiet)
	fmt.Println(self.Memory("VmRSS"), self.Memory("RssAnon"))
	<-ctx.Done()
	<-ended
	return nil
}

// quiet is the time until the memory of a first state has been given back.
const quiet = 8 * time.Second

func manifests() (folder string, err error) {
	folder, err = os.MkdirTemp("", "agents-")
	if err != nil {
		return "", err
	}
	return folder, writeManifest(folder, "v1")
}

func writeManifest(folder, image string) error {
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system, uid: one, labels: {v: " + image + "}}\n" +
		"spec: {containers: [{name: main, image: etcd}]}\n"
	temporary := filepath.Join(folder, ".etcd.yaml")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(folder, "etcd.yaml"))
}
