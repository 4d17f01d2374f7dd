// Package cluster is an API server in a process of its own, with the objects of a cluster: it
// counts what it is asked, and changes its objects when it is told to.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
func New(size Size) (c *Cluster, err error) {
	c = &Cluster{size: size}
	if c.API, err = apiserver.NewServer(); err != nil {
		return nil, err
	}
	if size.Fixed {
		return c, c.fix()
	}
	c.pods = apiserver.Serve(c.API, builtin.Pods())
	c.version = c.pods.Cache().ResourceVersion
	for range size.Pods {
		key, err := c.create()
		if err != nil {
			return nil, err
		}
		c.keys = append(c.keys, key)
	}
	if size.PodsOnly {
		return c, nil
	}
	return c, c.serveMore()
}

// serveMore serves nodes and services.
func (c *Cluster) serveMore() error {
	services := apiserver.Serve(c.API, builtin.Of[*corev1.Service]())
	service, _ := world.KindOf("Service")
	for i := range c.size.Services {
		one := service.Object(i, 0, 0).(*corev1.Service)
		one.ResourceVersion = ""
		if _, err := services.Create(one); err != nil {
			return err
		}
	}
	c.nodes = apiserver.Serve(c.API, builtin.Of[*corev1.Node]())
	node, _ := world.KindOf("Node")
	for i := range c.size.Nodes {
		one := node.Object(i, 0, 0).(*corev1.Node)
		one.ResourceVersion, one.Name = "", Node(i)
		if _, err := c.nodes.Create(one); err != nil {
			return err
		}
	}
	return nil
}

// fix serves a cache of all pods.
func (c *Cluster) fix() error {
	cache, err := watchcache.NewCache(builtin.Pods().Kind)
	if err != nil {
		return err
	}
	pods := make([]*corev1.Pod, c.size.Pods)
	for i := range pods {
		pods[i] = c.pod()
		pods[i].ResourceVersion = world.Version(i)
	}
	apiserver.ServeCache(c.API, cache, builtin.Pods().View)
	c.version = cache.ResourceVersion
	return cache.Replace(store.Items(pods...), store.At(world.Version(c.size.Pods)))
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
func (c *Cluster) create() (key metav1.ObjectMeta, err error) {
	pod := c.pod()
	status, fields := pod.Status, pod.ManagedFields
	if pod, err = c.pods.Create(pod); err != nil {
		return key, err
	}
	pod = pod.DeepCopy()
	pod.Status, pod.ManagedFields = status, fields
	_, err = c.pods.UpdateStatus(pod)
	return metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, err
}

// atRate does something n times, at a rate a second.
func atRate(ctx context.Context, n, rate int, do func(i int) error) error {
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(max(1, rate)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// change changes a pod, or its status.
func (c *Cluster) change(i int, status bool, change func(*corev1.Pod)) error {
	key := c.keys[i%len(c.keys)]
	pod, err := c.pods.Get(key.Namespace, key.Name)
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	change(pod)
	if status {
		_, err = c.pods.UpdateStatus(pod)
	} else {
		_, err = c.pods.Update(pod)
	}
	return err
}

// write stamps pods in turn.
func (c *Cluster) write(ctx context.Context, n, rate int) error {
	return atRate(ctx, n, rate, func(i int) error {
		return c.change(i, false, func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, Stamp, strconv.FormatInt(time.Now().UnixNano(), 10))
		})
	})
}

// touch gives the first pod a label or a status.
func (c *Cluster) touch(what, value string) error {
	return c.change(0, what == "status", func(pod *corev1.Pod) {
		if what == "status" {
			pod.Status.Message = value
		} else {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "v", value)
		}
	})
}

// churn makes the changes of some minutes: 1 % of the pods is replaced each minute, and each node
// reports every five minutes.
func (c *Cluster) churn(ctx context.Context, minutes, rate int) error {
	err := atRate(ctx, max(1, len(c.keys)*minutes/100), rate, func(i int) (err error) {
		i = i * 7919 % len(c.keys)
		if _, err := c.pods.Remove(c.keys[i].Namespace, c.keys[i].Name); err != nil {
			return err
		}
		c.keys[i], err = c.create()
		return err
	})
	reports := minutes / 5 * c.size.Nodes
	if c.size.PodsOnly {
		reports = 0
	}
	if err == nil {
		err = atRate(ctx, reports, rate, c.report)
	}
	time.Sleep(2 * time.Second) // the last events are on their way
	return err
}

func (c *Cluster) report(i int) error {
	node, err := c.nodes.Get("", Node(i%c.size.Nodes))
	if err != nil {
		return err
	}
	node = node.DeepCopy()
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(i) * time.Second))
	_, err = c.nodes.UpdateStatus(node)
	return err
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

// Serve is the role of a cluster's process: it says its URL and that of its control.
func Serve(ctx context.Context, size Size) error {
	c, err := New(size)
	if err != nil {
		return err
	}
	control := harness.Control(c.Figures)
	for path, do := range map[string]func(context.Context, url.Values) (any, error){
		"/write": func(ctx context.Context, q url.Values) (any, error) {
			return nil, c.write(ctx, number(q, "n"), number(q, "rate"))
		},
		"/churn": func(ctx context.Context, q url.Values) (any, error) {
			return nil, c.churn(ctx, number(q, "minutes"), number(q, "rate"))
		},
		"/touch":   func(_ context.Context, q url.Values) (any, error) { return nil, c.touch(q.Get("what"), q.Get("value")) },
		"/version": func(context.Context, url.Values) (any, error) { return c.version(), nil },
	} {
		control.HandleFunc(path, harness.Answer(func(r *http.Request) (any, error) { return do(r.Context(), r.URL.Query()) }))
	}
	controls, err := harness.Serving{}.Serve(control)
	if err != nil {
		return err
	}
	url, err := harness.Serving{TLS: size.TLS, Counts: &c.Connections}.Serve(c.Handler())
	if err == nil {
		harness.Say(ctx, url, controls)
	}
	return err
}

func number(q url.Values, name string) int {
	n, _ := strconv.Atoi(q.Get(name))
	return n
}
