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
)

// silent keeps the ends of watches, at the end of a process, out of the tables.
var silent = sources.WithLogger(logr.Discard())

func configOf(url string) *rest.Config {
	return &rest.Config{
		Host: url, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	}
}

// follow has the pods of a node until ctx ends; synced is called once they are there.
func follow(ctx context.Context, library string, config *rest.Config, node string, synced func()) error {
	switch library {
	case empty:
		synced()
		<-ctx.Done()
		return nil
	case tributary, seldom:
		client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
		if err != nil {
			return err
		}
		var options []reflector.Option
		if library == seldom {
			options = append(options, reflector.WithProof(15*time.Minute))
		}
		return consume(ctx, sources.New(node, silent, sources.APIServer(client, options...)), synced)
	case kubelet:
		return followKubelet(ctx, config.Host, node, synced)
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
	return consume(ctx, sources.New(node, silent, sources.Kubelet(host+kubeletPath, options...)), synced)
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
func beAgents(ctx context.Context, s settings, library, url string) error {
	ctx = self.UntilInputEnds(ctx)
	var ready, running sync.WaitGroup
	ready.Add(s.Agents)
	for i := range s.Agents {
		running.Go(func() {
			if library == polling {
				for range s.Rounds {
					if err := poll(ctx, url, nodeName(i)); err != nil {
						fmt.Fprintln(os.Stderr, err)
					}
				}
				ready.Done()
				return
			}
			if err := follow(ctx, library, configOf(url), nodeName(i), ready.Done); err != nil && ctx.Err() == nil {
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D"+node, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// beOne is a process that says its memory, once it has its pods and all is quiet.
func beOne(ctx context.Context, library, url string) error {
	return beQuiet(ctx, 5*time.Second, func(ctx context.Context, synced func()) error {
		if library != tributary {
			return follow(ctx, library, configOf(url), nodeName(0), synced)
		}
		folder, err := manifests() // the sources of examples/kubelet-pods
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		client, err := listwatch.NewRESTClient(configOf(url), corev1.SchemeGroupVersion)
		if err != nil {
			return err
		}
		return consume(ctx, sources.New(nodeName(0), silent, sources.APIServer(client), sources.File(folder)), synced)
	})
}

// beNeighbour is the process of one of several agents of a node. The kubelet is asked often, so
// that the garbage of a poll is in its memory.
func beNeighbour(ctx context.Context, library, url string) error {
	return beQuiet(ctx, 8*time.Second, func(ctx context.Context, synced func()) error {
		if library == kubelet {
			return followKubelet(ctx, url, nodeName(0), synced, static.WithInterval(every))
		}
		return follow(ctx, library, configOf(url), nodeName(0), synced)
	})
}

// beQuiet runs an agent, and says its memory some time after it is synced: all of it, and the
// anonymous part.
func beQuiet(ctx context.Context, quiet time.Duration, agent func(ctx context.Context, synced func()) error) error {
	ctx = self.UntilInputEnds(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- agent(ctx, func() { close(ready) }) }()
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
