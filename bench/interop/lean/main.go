// The command lean measures the memory of a program that reads 50 Secrets of a cluster by name,
// with each of the caches, and prints a table.
//
//	go run -C bench ./interop/lean        # 33,493 Secrets of 10 KB: a minute
//	go run -C bench ./interop/lean -quick # small, for CI
//
// The fake API server in this process has the Secrets. Each row is a fresh process with one cache,
// which speaks HTTP to it and reads the 50 Secrets one after the other. "Bare" makes a cache and
// reads nothing.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/server/apiserver"
)

const (
	read = 50
	size = 10_000
)

var ofSecrets = corev1.SchemeGroupVersion.WithKind("Secret")

// rows are the programs.
var rows = []struct {
	name         string
	make         cache.NewCacheFunc
	bare, events bool
}{
	{name: "bare", make: controllerruntime.NewCache, bare: true},
	{name: "tributary, Secrets are lean", make: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{}))},
	{name: "tributary, lean, and metadata are watched", make: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{})), events: true},
	{name: "tributary", make: controllerruntime.NewCache},
	{name: "controller-runtime", make: cache.New},
}

// program is the task of one process.
type program struct {
	URL string
	Row int
}

func main() { harness.Main(3, harness.Roles{"read": harness.Measures(measure)}, measureAll) }

func measureAll(ctx context.Context, s harness.Settings) {
	count := 33_493
	if s.Quick {
		count = 200
	}
	url := serve(count)
	var programs []program
	for i := range rows {
		programs = append(programs, program{url, i})
	}
	medians := harness.ByTurns(s.Repeat, programs, func(p program) harness.Figures { return harness.Measure(ctx, "read", p) })
	table := harness.Table{Lead: "cache", Columns: []harness.Column{
		harness.Col("live heap MB", "%.1f", "live/1e6"), harness.Col("RSS after a collection MB", "%.1f", "rss/1e6"),
		harness.Col("peak RSS MB", "%.1f", "peak/1e6"), harness.Col("first read ms", "%.1f", "first*1e3"),
		harness.Col("all reads ms", "%.1f", "all*1e3"),
	}}
	table.Begin(fmt.Sprintf("%d Secrets of %d bytes, %d read", count, size, read))
	harness.Rows(table, programs, medians)
}

func (p program) String() string { return rows[p.Row].name }

// serve serves Secrets of random bytes until the process ends.
func serve(count int) (url string) {
	api := harness.Must(apiserver.NewServer())
	random := rand.NewChaCha8([32]byte{})
	cluster.Fill(api, "Secret", count, func(s *corev1.Secret, i int) {
		value := make([]byte, size)
		_, _ = random.Read(value)
		*s = corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"value": value}}
		s.Namespace, s.Name, s.Labels = "ns", nameOf(i), map[string]string{"app": nameOf(i)}
	})
	return harness.Serving{}.Serve(api)
}

func nameOf(i int) string { return fmt.Sprintf("secret-%06d", i) }

// measure makes a cache, and reads by it.
func measure(ctx context.Context, p program) harness.Figures {
	log.SetLogger(logr.Discard())
	row := rows[p.Row]
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(ofSecrets, meta.RESTScopeNamespace)
	options := cache.Options{Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields()}
	c := harness.Must(row.make(&rest.Config{Host: p.URL, QPS: -1}, options))
	if row.events {
		example := &metav1.PartialObjectMetadata{}
		example.SetGroupVersionKind(ofSecrets)
		harness.Must(c.GetInformer(ctx, example))
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		harness.Fail("the cache has not synced")
	}
	took := harness.Figures{"first": 0, "all": 0}
	if !row.bare {
		took = reads(ctx, c)
	}
	live := harness.Live()
	debug.FreeOSMemory()
	f := harness.Used().With("", took)
	f["live"] = live
	runtime.KeepAlive(c)
	return f
}

// reads has the seconds until the first object was read, and all.
func reads(ctx context.Context, c client.Reader) harness.Figures {
	took, began := harness.Figures{}, time.Now()
	for i := range read {
		var obj corev1.Secret
		harness.Check(c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: nameOf(i)}, &obj))
		if len(obj.Data["value"]) != size {
			harness.Fail("%s has no value", obj.Name)
		}
		if i == 0 {
			took["first"] = time.Since(began).Seconds()
		}
	}
	took["all"] = time.Since(began).Seconds()
	return took
}
