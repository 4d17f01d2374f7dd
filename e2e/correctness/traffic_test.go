package correctness

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/testing/correctness"
)

// What runs at the same time.
const (
	clients    = 6
	operations = 500 // of each client
	watchers   = 8
)

// traffic is what clients and watchers have asked and were answered.
type traffic struct {
	store *Store
	base  uint64 // the version before

	mu      sync.Mutex
	seen    uint64
	history []correctness.Operation
	watches []correctness.WatchOperation
}

func (c *traffic) pods() bool { return c.store.resource == "pods" }

// record runs clients and watchers against a store until the clients are done.
func record(t *testing.T, store *Store) *traffic {
	t.Helper()
	base, err := store.GetCurrentResourceVersion(t.Context())
	require.NoError(t, err)
	c := &traffic{store: store, base: base, seen: base}
	stop, last := make(chan struct{}), make(chan time.Time)
	var busy, watching sync.WaitGroup
	for id := range clients {
		busy.Go(func() { c.client(t.Context(), id) })
	}
	for range watchers {
		watching.Go(func() { c.watcher(t.Context(), stop) })
	}
	all := storage.Everything
	all.AllowWatchBookmarks = true
	watching.Go(func() {
		c.watch(t.Context(), correctness.WatchRequest{Key: "/pods/", Options: storage.ListOptions{
			Recursive: true, ResourceVersion: strconv.FormatUint(base, 10), Predicate: all,
		}}, last)
	})
	busy.Wait()
	close(stop)
	time.Sleep(500 * time.Millisecond) // for the events of the last writes
	close(last)
	watching.Wait()
	require.NoError(t, t.Context().Err())
	c.number(t)
	return c
}

func (c *traffic) client(ctx context.Context, id int) {
	var last *example.Pod
	var next string // of a list in pages
	var nextKey string
	var nextOptions storage.ListOptions
	for range operations {
		namespace, name := oneNamespace(), oneName()
		req := correctness.Request{Key: "/pods/" + namespace + "/" + name}
		switch n := rand.IntN(100); {
		case n < 20:
			req.Op, req.Create = correctness.OpCreate, c.creation(namespace, name)
		case n < 35:
			req.Op, req.Delete = correctness.OpDelete, c.deletion(last)
		case n < 60:
			req.Op, req.Update = correctness.OpUpdate, c.update(last)
		case n < 72:
			req.Op, req.Get.Options.ResourceVersion = correctness.OpGet, c.version()
		default:
			req.Op = correctness.OpList
			req.Key, req.List.Options = c.list(namespace, name)
			if next != "" {
				req.Key, req.List.Options = nextKey, nextOptions
				o := &req.List.Options
				o.ResourceVersion, o.ResourceVersionMatch, o.Predicate.Continue = "", "", next
			}
		}
		start := time.Now()
		resp := perform(ctx, c.store, req)
		end := time.Now()
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		next = ""
		switch object := resp.Object.(type) {
		case *example.Pod:
			last = object
			v, _ := strconv.ParseUint(object.ResourceVersion, 10, 64)
			c.seen = max(c.seen, v)
		case *example.PodList:
			if object.Continue != "" && rand.IntN(5) > 0 {
				next, nextKey, nextOptions = object.Continue, req.Key, req.List.Options
			}
		}
		c.history = append(c.history, correctness.Operation{ClientID: id, Request: req, Response: resp, Start: start, End: end})
		c.mu.Unlock()
	}
}

func perform(ctx context.Context, s storage.Interface, req correctness.Request) correctness.Response {
	var out runtime.Object = &example.Pod{}
	var err error
	switch req.Op {
	case correctness.OpCreate:
		err = s.Create(ctx, req.Key, req.Create.Object, out, 0)
	case correctness.OpDelete:
		err = s.Delete(ctx, req.Key, out, req.Delete.Preconditions, req.Delete.ValidateDeletion, nil, storage.DeleteOptions{})
	case correctness.OpUpdate:
		err = s.GuaranteedUpdate(ctx, req.Key, out, false, req.Update.Preconditions, req.Update.UpdateFunc, nil)
	case correctness.OpGet:
		err = s.Get(ctx, req.Key, req.Get.Options, out)
	case correctness.OpList:
		out = &example.PodList{}
		err = s.GetList(ctx, req.Key, req.List.Options, out)
	}
	if err != nil {
		return correctness.Response{Err: err}
	}
	return correctness.Response{Object: out}
}

func (c *traffic) watcher(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		c.watch(ctx, c.watchOf(oneNamespace(), oneName()), time.After(time.Duration(200+rand.IntN(1500))*time.Millisecond))
	}
}

func (c *traffic) watch(ctx context.Context, req correctness.WatchRequest, end <-chan time.Time) {
	var resp correctness.WatchResponse
	w, err := c.store.Watch(ctx, req.Key, req.Options)
	if err != nil {
		resp.Err = err
	} else {
		defer w.Stop()
	}
	for open := err == nil; open; {
		select {
		case e, ok := <-w.ResultChan():
			if open = ok; ok {
				resp.Events = append(resp.Events, e)
			}
		case <-end:
			open = false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = append(c.watches, correctness.WatchOperation{Request: req, Response: resp})
}

// events counts those that were told.
func (c *traffic) events() (n int) {
	for _, w := range c.watches {
		n += len(w.Response.Events)
	}
	return n
}

// numbering gives all that was recorded the versions of the model.
type numbering struct{ *Versions }

func (c *traffic) number(t *testing.T) {
	t.Helper()
	n := numbering{NewVersions(c.base)}
	for _, op := range c.history {
		if p, ok := op.Response.Object.(*example.Pod); ok && op.Request.Op != correctness.OpGet {
			v, _ := strconv.ParseUint(p.ResourceVersion, 10, 64)
			if v <= c.base {
				t.Errorf("an answer has not the version of its write: %s of %s is %+v", op.Request.Op, op.Request.Key, p)
				continue
			}
			n.Add(v, op.Request.Key)
		}
	}
	for i := range c.history {
		n.operation(&c.history[i])
	}
	for i := range c.watches {
		w := &c.watches[i]
		n.options(&w.Request.Options)
		w.Response.Events = n.events(w.Response.Events)
	}
}

func (n numbering) token(text string) string {
	return retoken(text, func(v int64) int64 { return int64(n.Virtual(uint64(v))) })
}

func (n numbering) options(o *storage.ListOptions) {
	o.ResourceVersion = n.virtual(o.ResourceVersion)
	o.Predicate.Continue = n.token(o.Predicate.Continue)
}

func (n numbering) object(p *example.Pod) {
	if p.DeletionTimestamp != nil {
		p.ResourceVersion = n.ofKey("/pods/"+p.Namespace+"/"+p.Name, p.ResourceVersion)
	} else if p.ResourceVersion != "" {
		p.ResourceVersion = n.virtual(p.ResourceVersion)
	}
	p.DeletionTimestamp = nil
}

func (n numbering) operation(op *correctness.Operation) {
	req := &op.Request
	n.options(&req.List.Options)
	req.Get.Options.ResourceVersion = n.virtual(req.Get.Options.ResourceVersion)
	for _, p := range []*storage.Preconditions{req.Delete.Preconditions, req.Update.Preconditions} {
		if p != nil && p.ResourceVersion != nil {
			*p.ResourceVersion = n.virtual(*p.ResourceVersion)
		}
	}
	switch out := op.Response.Object.(type) {
	case *example.Pod:
		out = out.DeepCopy()
		n.object(out)
		op.Response.Object = out
		if req.Op == correctness.OpCreate { // the UID is the server's choice
			in := out.DeepCopy()
			in.ResourceVersion = ""
			req.Create.Object = in
		}
	case *example.PodList:
		for i := range out.Items {
			n.object(&out.Items[i])
		}
		out.ResourceVersion = n.virtual(out.ResourceVersion)
		out.Continue = n.token(out.Continue)
	}
}

func (n numbering) events(told []watch.Event) (events []watch.Event) {
	for _, e := range told {
		if p, ok := e.Object.(*example.Pod); ok {
			key := "/pods/" + p.Namespace + "/" + p.Name
			if p.DeletionTimestamp != nil && e.Type == watch.Modified && n.ofKey(key, p.ResourceVersion) != n.virtualExact(p.ResourceVersion) {
				continue // the first write of a deletion
			}
			p = p.DeepCopy()
			n.object(p)
			e.Object = p
		}
		events = append(events, e)
	}
	return events
}
