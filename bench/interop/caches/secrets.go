package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/server/apiserver"
)

const (
	fewSecrets = 50
	secretSize = 10_000
)

// readers are the programs.
var readers = []struct {
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

// measureSecrets prints the memory of a program that reads 50 Secrets of many by name, with each of
// the caches. "Bare" makes a cache and reads nothing.
func measureSecrets(ctx context.Context, s harness.Settings) {
	count := 33_493
	if s.Quick {
		count = 200
	}
	url := serveSecrets(count)
	var programs []program
	for i := range readers {
		programs = append(programs, program{url, i})
	}
	medians := harness.ByTurns(s.Repeat, programs, func(p program) harness.Figures { return harness.Measure(ctx, "secrets", p) })
	table := harness.Table{Lead: "cache", Columns: []harness.Column{
		harness.Col("live heap MB", "%.1f", "live/1e6"), harness.Col("RSS after a collection MB", "%.1f", "rss/1e6"),
		harness.Col("peak RSS MB", "%.1f", "peak/1e6"), harness.Col("first read ms", "%.1f", "first*1e3"),
		harness.Col("all reads ms", "%.1f", "all*1e3"),
	}}
	table.Begin(fmt.Sprintf("%d Secrets of %d bytes, %d read", count, secretSize, fewSecrets))
	harness.Rows(table, programs, medians)
}

func (p program) String() string { return readers[p.Row].name }

// serveSecrets serves Secrets of random bytes until the process ends.
func serveSecrets(count int) (url string) {
	api := harness.Must(apiserver.NewServer())
	random := rand.NewChaCha8([32]byte{})
	cluster.Fill(api, "Secret", count, func(s *corev1.Secret, i int) {
		value := make([]byte, secretSize)
		_, _ = random.Read(value)
		*s = corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"value": value}}
		s.Namespace, s.Name, s.Labels = "ns", nameOf(i), map[string]string{"app": nameOf(i)}
	})
	return harness.Serving{}.Serve(api)
}

func nameOf(i int) string { return fmt.Sprintf("secret-%06d", i) }

// readSecrets makes a cache, and reads by it.
func readSecrets(ctx context.Context, p program) harness.Figures {
	row := readers[p.Row]
	c := harness.Must(row.make(&rest.Config{Host: p.URL, QPS: -1}, optionsOf("Secret")))
	if row.events {
		example := &metav1.PartialObjectMetadata{}
		example.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		harness.Must(c.GetInformer(ctx, example))
	}
	start(ctx, c)
	took := harness.Figures{"first": 0, "all": 0}
	if !row.bare {
		took = readAll(ctx, c)
	}
	live := harness.Live()
	debug.FreeOSMemory()
	f := harness.Used().With("", took)
	f["live"] = live
	runtime.KeepAlive(c)
	return f
}

// readAll has the seconds until the first object was read, and all.
func readAll(ctx context.Context, c client.Reader) harness.Figures {
	took, began := harness.Figures{}, time.Now()
	for i := range fewSecrets {
		var obj corev1.Secret
		harness.Check(c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: nameOf(i)}, &obj))
		if len(obj.Data["value"]) != secretSize {
			harness.Fail("%s has no value", obj.Name)
		}
		if i == 0 {
			took["first"] = time.Since(began).Seconds()
		}
	}
	took["all"] = time.Since(began).Seconds()
	return took
}
