package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// upstreamSettings are those of the process of an upstream.
type upstreamSettings struct {
	Pods, Nodes, Services int
	Varied                bool
	Fixed                 bool // nothing is ever written, which makes a start with many pods short
}

// stamp is the annotation that has the time of a write, in nanoseconds of 19 digits.
const stamp = "bench/at"

// counts are what an upstream has been asked.
type counts struct {
	Lists, Probes, Watches, Reviews, Other int64 // requests; a probe lists metadata
	Open, Connections                      int64 // watches and connections that are open now
	Bytes                                  int64 // sent
}

func (c counts) since(before counts) counts {
	return counts{
		c.Lists - before.Lists, c.Probes - before.Probes, c.Watches - before.Watches, c.Reviews - before.Reviews, c.Other - before.Other,
		c.Open, c.Connections, c.Bytes - before.Bytes,
	}
}

// counters count requests to a handler.
type counters struct {
	lists, probes, watches, reviews, other, open, connections, bytes atomic.Int64
}

func (c *counters) counts() counts {
	return counts{c.lists.Load(), c.probes.Load(), c.watches.Load(), c.reviews.Load(), c.other.Load(), c.open.Load(), c.connections.Load(), c.bytes.Load()}
}

func (c *counters) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, known := apiserver.ParseTarget(r.URL.Path)
		switch {
		case strings.HasSuffix(r.URL.Path, "reviews"):
			c.reviews.Add(1)
			review(w, r)
			return
		case r.URL.Query().Get("watch") != "":
			c.watches.Add(1)
			c.open.Add(1)
			defer c.open.Add(-1)
		case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"):
			c.probes.Add(1)
		case known && target.Name == "" && r.Method == http.MethodGet:
			c.lists.Add(1)
		default:
			c.other.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// review permits everything to everybody, whose names are their tokens.
func review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var answer any
	if strings.HasSuffix(r.URL.Path, "tokenreviews") {
		var review authenticationv1.TokenReview
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:team:" + review.Spec.Token, UID: review.Spec.Token,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"},
			Extra:  map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {review.Spec.Token}},
		}}
		answer = review
	} else {
		var review authorizationv1.SubjectAccessReview
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		review.Status.Allowed = true
		answer = review
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer)
}

// origin is an API server with the objects of a cluster.
type origin struct {
	upstreamSettings
	counters
	api      *apiserver.Server
	pods     *collection.Collection[*corev1.Pod]
	services *collection.Collection[*corev1.Service]
	nodes    *collection.Collection[*corev1.Node]
	keys     []metav1.ObjectMeta // of pods
	made     int
	version  func() string
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

func newOrigin(s upstreamSettings) (o *origin, err error) {
	o = &origin{upstreamSettings: s}
	if o.api, err = apiserver.NewServer(); err != nil {
		return nil, err
	}
	if s.Fixed {
		return o, o.fill()
	}
	o.pods = apiserver.Serve(o.api, builtin.Pods())
	o.version = o.pods.Cache().ResourceVersion
	o.services = apiserver.Serve(o.api, builtin.Of[*corev1.Service]())
	o.nodes = apiserver.Serve(o.api, builtin.Of[*corev1.Node]())
	for range s.Pods {
		pod, err := o.create()
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name})
	}
	service, _ := world.KindOf("Service")
	for i := range s.Services {
		one := service.Object(i, 0, 0).(*corev1.Service)
		one.ResourceVersion = ""
		if _, err := o.services.Create(one); err != nil {
			return nil, err
		}
	}
	node, _ := world.KindOf("Node")
	for i := range s.Nodes {
		one := node.Object(i, 0, 0).(*corev1.Node)
		one.ResourceVersion, one.Name = "", nodeName(i)
		if _, err := o.nodes.Create(one); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// fill serves a cache of all pods.
func (o *origin) fill() error {
	cache, err := watchcache.NewCache(builtin.Pods().Kind)
	if err != nil {
		return err
	}
	pods := make([]*corev1.Pod, o.Pods)
	for i := range pods {
		pods[i] = o.pod()
		pods[i].ResourceVersion = world.Version(i)
	}
	apiserver.ServeCache(o.api, cache, builtin.Pods().View)
	o.version = cache.ResourceVersion
	return cache.Replace(store.Items(pods...), store.At(world.Version(o.Pods)))
}

// pod is the next pod.
func (o *origin) pod() *corev1.Pod {
	pod := world.Pods{PerSet: 50, Varied: o.Varied}.Pod(o.made, 0, 0)
	pod.Name, pod.ResourceVersion = fmt.Sprintf("%s-%d", pod.Name, o.made), ""
	pod.Spec.NodeName = nodeName(o.made % max(1, o.Nodes))
	o.made++
	return pod
}

// create makes a pod, and as its kubelet does, a status for it.
func (o *origin) create() (pod *corev1.Pod, err error) {
	pod = o.pod()
	status, fields := pod.Status, pod.ManagedFields
	if pod, err = o.pods.Create(pod); err != nil {
		return nil, err
	}
	pod = pod.DeepCopy()
	pod.Status, pod.ManagedFields = status, fields
	return o.pods.UpdateStatus(pod)
}

// write changes the annotation of pods in turn, n times, at a rate.
func (o *origin) write(ctx context.Context, n, rate int) error {
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return ctx.Err()
		}
		key := o.keys[i%len(o.keys)]
		pod, err := o.pods.Get(key.Namespace, key.Name)
		if err != nil {
			return err
		}
		pod = pod.DeepCopy()
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[stamp] = strconv.FormatInt(time.Now().UnixNano(), 10)
		if _, err := o.pods.Update(pod); err != nil {
			return err
		}
	}
	return nil
}

// live makes the changes of an hour as fast as a rate permits: 1 % of the pods is replaced each
// minute, and each node reports every five minutes.
func (o *origin) live(ctx context.Context, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := range max(1, len(o.keys)*60/100) {
		<-tick.C
		k := i * 7919 % len(o.keys)
		if _, err := o.pods.Remove(o.keys[k].Namespace, o.keys[k].Name); err != nil {
			return err
		}
		pod, err := o.create()
		if err != nil {
			return err
		}
		o.keys[k] = metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}
	}
	for i := range 12 * o.Nodes {
		<-tick.C
		node, err := o.nodes.Get("", nodeName(i%o.Nodes))
		if err != nil {
			return err
		}
		node = node.DeepCopy()
		node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(i) * time.Second))
		if _, err := o.nodes.UpdateStatus(node); err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second) // the last events are on their way
	return ctx.Err()
}

// serveUpstream prints its URL, that of its control, and the version, and serves until its input
// ends.
func serveUpstream(ctx context.Context, s upstreamSettings) error {
	o, err := newOrigin(s)
	if err != nil {
		return err
	}
	number := func(r *http.Request, name string) int {
		n, _ := strconv.Atoi(r.FormValue(name))
		return n
	}
	answer := func(w http.ResponseWriter, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "{}")
	}
	controls, err := control(o.counts, map[string]http.HandlerFunc{
		"/write": func(w http.ResponseWriter, r *http.Request) {
			answer(w, o.write(r.Context(), number(r, "n"), number(r, "rate")))
		},
		"/live": func(w http.ResponseWriter, r *http.Request) { answer(w, o.live(r.Context(), number(r, "rate"))) },
		"/version": func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(o.version())
		},
	})
	if err != nil {
		return err
	}
	url, err := listen(o.around(o.api), true, &o.counters)
	if err != nil {
		return err
	}
	fmt.Println(url, controls)
	<-self.UntilInputEnds(ctx).Done()
	return nil
}

// listen serves a handler over HTTP/1.1 and HTTP/2, until the process ends.
func listen(handler http.Handler, secure bool, counts *counters) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	if counts != nil {
		listener = counted{listener, counts}
	}
	web := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	if !secure {
		go func() { _ = web.Serve(listener) }()
		return "http://" + address, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return "", err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return "", err
	}
	web.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	go func() { _ = web.ServeTLS(listener, "", "") }()
	return "https://" + address, nil
}

// counted counts connections, and the bytes that are written to them.
type counted struct {
	net.Listener
	counts *counters
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.counts.connections.Add(1)
	return countedConn{conn, c.counts, sync.OnceFunc(func() { c.counts.connections.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	counts *counters
	closed func()
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.bytes.Add(int64(n))
	return n, err
}
