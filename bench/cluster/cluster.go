// Package cluster is an API server in a process of its own, with the objects of a cluster: it
// counts what it is asked, and changes its objects when it is told to.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Size is the objects of a cluster: the task of its process.
type Size struct {
	Pods, Nodes, Services int
	PodsOnly              bool // nodes are names, and are not served
	Fixed                 bool // nothing is ever written, which makes a start with many pods short
	TLS                   bool
}

// Stamp is the annotation that has the time of a write, in nanoseconds of 19 digits.
const Stamp = "bench/at"

// KubeletPath is where the server answers as the kubelet of the first node.
const KubeletPath = "/kubelet/pods"

// Node is the name of a node.
func Node(i int) string { return fmt.Sprintf("node-%04d", i) }

// Cluster is the API server.
type Cluster struct {
	Counts
	API *apiserver.Server

	size    Size
	pods    *collection.Collection[*corev1.Pod]
	nodes   *collection.Collection[*corev1.Node]
	keys    []metav1.ObjectMeta // of pods
	made    int
	version func() string
}

// New makes the API server and its objects.
func New(size Size) *Cluster {
	c := &Cluster{size: size, API: harness.Must(apiserver.NewServer())}
	if size.Fixed {
		c.fix()
		return c
	}
	c.pods = apiserver.Serve(c.API, builtin.Pods())
	c.version = c.pods.Cache().ResourceVersion
	for range size.Pods {
		c.keys = append(c.keys, c.create())
	}
	if !size.PodsOnly {
		Fill(c.API, "Service", size.Services, func(*corev1.Service, int) {})
		c.nodes = Fill(c.API, "Node", size.Nodes, func(n *corev1.Node, i int) { n.Name = Node(i) })
	}
	return c
}

// Fill serves objects of a kind, which differ from those of package world.
func Fill[T store.Object](api *apiserver.Server, kind string, count int, differ func(obj T, i int)) *collection.Collection[T] {
	objects := apiserver.Serve(api, builtin.Of[T]())
	of := world.KindOf(kind)
	for i := range count {
		obj := of.Object(i, 0, 0).(T)
		obj.SetResourceVersion("")
		differ(obj, i)
		harness.Must(objects.Create(obj))
	}
	return objects
}

// fix serves a cache of all pods.
func (c *Cluster) fix() {
	cache := harness.Must(watchcache.NewCache(builtin.Pods().Kind))
	pods := make([]*corev1.Pod, c.size.Pods)
	for i := range pods {
		pods[i] = c.pod()
		pods[i].ResourceVersion = world.Version(i)
	}
	apiserver.ServeCache(c.API, cache, builtin.Pods().View)
	c.version = cache.ResourceVersion
	harness.Check(cache.Replace(store.Items(pods...), store.At(world.Version(c.size.Pods))))
}

// pod is the next pod.
func (c *Cluster) pod() *corev1.Pod {
	pod := world.Pods{PerSet: 50}.Pod(c.made, 0, 0)
	pod.Name, pod.ResourceVersion = fmt.Sprintf("%s-%d", pod.Name, c.made), ""
	pod.Spec.NodeName = Node(c.made % max(1, c.size.Nodes))
	c.made++
	return pod
}

// create makes a pod, and as its kubelet does, a status for it.
func (c *Cluster) create() metav1.ObjectMeta {
	pod := c.pod()
	status, fields := pod.Status, pod.ManagedFields
	pod = harness.Must(c.pods.Create(pod)).DeepCopy()
	pod.Status, pod.ManagedFields = status, fields
	harness.Must(c.pods.UpdateStatus(pod))
	return metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}
}

// atRate does something n times, at a rate a second.
func atRate(ctx context.Context, n, rate int, do func(i int)) {
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(max(1, rate)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			harness.Check(ctx.Err())
		}
		do(i)
	}
}

// changing is a copy of a pod, to be changed.
func (c *Cluster) changing(i int) *corev1.Pod {
	key := c.keys[i%len(c.keys)]
	return harness.Must(c.pods.Get(key.Namespace, key.Name)).DeepCopy()
}

// write stamps pods in turn.
func (c *Cluster) write(ctx context.Context, n, rate int) {
	atRate(ctx, n, rate, func(i int) {
		pod := c.changing(i)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, Stamp, strconv.FormatInt(time.Now().UnixNano(), 10))
		harness.Must(c.pods.Update(pod))
	})
}

// touch gives the first pod a label or a status.
func (c *Cluster) touch(what, value string) {
	pod := c.changing(0)
	if what == "status" {
		pod.Status.Message = value
		harness.Must(c.pods.UpdateStatus(pod))
		return
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "v", value)
	harness.Must(c.pods.Update(pod))
}

// churn makes the changes of some minutes: 1 % of the pods is replaced each minute, and each node
// reports every five minutes.
func (c *Cluster) churn(ctx context.Context, minutes, rate int) {
	atRate(ctx, max(1, len(c.keys)*minutes/100), rate, func(i int) {
		i = i * 7919 % len(c.keys)
		harness.Must(c.pods.Remove(c.keys[i].Namespace, c.keys[i].Name))
		c.keys[i] = c.create()
	})
	if !c.size.PodsOnly {
		atRate(ctx, minutes/5*c.size.Nodes, rate, c.report)
	}
	time.Sleep(2 * time.Second) // the last events are on their way
}

func (c *Cluster) report(i int) {
	node := harness.Must(c.nodes.Get("", Node(i%c.size.Nodes))).DeepCopy()
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(i) * time.Second))
	harness.Must(c.nodes.UpdateStatus(node))
}

// Handler serves the API and the kubelet of the first node, and counts the requests.
func (c *Cluster) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", c.around(c.API))
	mux.HandleFunc("GET "+KubeletPath, func(w http.ResponseWriter, _ *http.Request) {
		c.kubelet.Add(1)
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, pod := range c.pods.Snapshot().All() {
			if pod.Spec.NodeName == Node(0) {
				list.Items = append(list.Items, *pod)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
	return mux
}

// Serve is the role of a cluster's process.
func Serve(ctx context.Context, size Size) {
	c := New(size)
	control := harness.Control(c.Figures, map[string]func(*http.Request) any{
		"/write": func(r *http.Request) any {
			c.write(r.Context(), harness.Number(r, "n"), harness.Number(r, "rate"))
			return nil
		},
		"/churn": func(r *http.Request) any {
			c.churn(r.Context(), harness.Number(r, "minutes"), harness.Number(r, "rate"))
			return nil
		},
		"/touch":   func(r *http.Request) any { c.touch(r.FormValue("what"), r.FormValue("value")); return nil },
		"/version": func(*http.Request) any { return c.version() },
	})
	harness.Serving{TLS: size.TLS, Counts: &c.Connections}.Say(ctx, c.Handler(), control)
}
