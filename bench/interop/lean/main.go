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
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
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

// result has the measurements of one process.
type result struct {
	Live, RSS, Peak float64 // MB
	First, All      float64 // ms until the first object was read, and all 50
}

func main() {
	quick := flag.Bool("quick", false, "small and once: shows that everything runs, not what it costs")
	repeat := flag.Int("repeat", 3, "how often each row is measured; the table has medians")
	row := flag.Int("row", -1, "a row, for the processes that this command starts")
	url := flag.String("url", "", "the server of the row")
	flag.Parse()
	if err := run(*quick, *repeat, *row, *url); err != nil {
		fmt.Fprintln(os.Stderr, "lean:", err)
		os.Exit(1)
	}
}

func run(quick bool, repeat, row int, url string) error {
	if row >= 0 {
		return measure(row, url)
	}
	count := 33_493
	if quick {
		count, repeat = 200, 1
	}
	server, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	defer server.Close()
	secrets := apiserver.Serve(server, builtin.Of[*corev1.Secret]())
	random := rand.NewChaCha8([32]byte{})
	for i := range count {
		value := make([]byte, size)
		_, _ = random.Read(value)
		if _, err := secrets.Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: nameOf(i), Labels: map[string]string{"app": nameOf(i)}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"value": value},
		}); err != nil {
			return err
		}
	}
	listener := httptest.NewServer(server)
	defer listener.Close()
	results := make([][]result, len(rows))
	for range repeat {
		for i := range rows {
			r, err := apart(i, listener.URL)
			if err != nil {
				return fmt.Errorf("%s: %w", rows[i].name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	fmt.Printf("\n### %d Secrets of %d bytes, %d read\n\n", count, size, read)
	fmt.Println("| cache | live heap MB | RSS after a collection MB | peak RSS MB | first read ms | all reads ms |")
	fmt.Println("|---|---|---|---|---|---|")
	for i, row := range rows {
		median := func(of func(result) float64) float64 {
			var all []float64
			for _, r := range results[i] {
				all = append(all, of(r))
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", row.name,
			median(func(r result) float64 { return r.Live }), median(func(r result) float64 { return r.RSS }),
			median(func(r result) float64 { return r.Peak }), median(func(r result) float64 { return r.First }),
			median(func(r result) float64 { return r.All }))
	}
	return nil
}

func nameOf(i int) string { return fmt.Sprintf("secret-%06d", i) }

// apart measures a row in a process of its own.
func apart(row int, url string) (r result, err error) {
	command := exec.Command(os.Args[0], "-row", strconv.Itoa(row), "-url", url)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// measure makes a cache, reads by it, and prints a result.
func measure(row int, url string) error {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(ofSecrets, meta.RESTScopeNamespace)
	c, err := rows[row].make(&rest.Config{Host: url, QPS: -1}, cache.Options{
		Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return err
	}
	if rows[row].events {
		example := &metav1.PartialObjectMetadata{}
		example.SetGroupVersionKind(ofSecrets)
		if _, err := c.GetInformer(ctx, example); err != nil {
			return err
		}
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return fmt.Errorf("the cache has not synced")
	}
	var r result
	if !rows[row].bare {
		if r, err = reads(ctx, c); err != nil {
			return err
		}
	}
	runtime.GC()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	r.Live, r.Peak = float64(sample[0].Value.Uint64())/1e6, float64(self.Memory("VmHWM"))/1e6
	debug.FreeOSMemory()
	r.RSS = float64(self.Memory("VmRSS")) / 1e6
	runtime.KeepAlive(c)
	return json.NewEncoder(os.Stdout).Encode(r)
}

func reads(ctx context.Context, c client.Reader) (r result, err error) {
	began := time.Now()
	for i := range read {
		var obj corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: nameOf(i)}, &obj); err != nil {
			return r, err
		}
		if len(obj.Data["value"]) != size {
			return r, fmt.Errorf("%s has no value", obj.Name)
		}
		if i == 0 {
			r.First = float64(time.Since(began).Microseconds()) / 1000
		}
	}
	r.All = float64(time.Since(began).Microseconds()) / 1000
	return r, nil
}
