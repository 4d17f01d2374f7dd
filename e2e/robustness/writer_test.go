package robustness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/store"
)

const (
	namespace = "default"
	names     = 10
	patience  = 2 * time.Second // of a request
)

// journal is what clients did. Each client does one thing at a time.
type journal struct {
	began time.Time

	mu         sync.Mutex
	operations []robustness.Operation
	unknown    int
	refused    int
}

func (j *journal) now() int64 { return int64(time.Since(j.began)) }

func (j *journal) add(o robustness.Operation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o.Return = max(j.now(), o.Call+1)
	j.operations = append(j.operations, o)
	if o.Unknown {
		j.unknown++
	}
}

func (j *journal) refuse() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused++
}

// writer writes as one client.
type writer struct {
	id     int
	client *rest.RESTClient
	random *rand.Rand
	log    *journal
	writes int
}

// run writes at every tick until ctx ends; a write under way is finished.
func (w *writer) run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			w.write()
		}
	}
}

func (w *writer) write() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := fmt.Sprint("k", w.random.IntN(names))
	old := &corev1.ConfigMap{}
	err := w.request(http.MethodGet, name, nil).Do(ctx).Into(old)
	if err != nil && !apierrors.IsNotFound(err) {
		return
	}
	w.writes++
	o := robustness.Operation{
		Client: w.id, Key: store.Key(namespace, name), Expected: old.ResourceVersion,
		Content: robustness.Content{Value: fmt.Sprintf("%d-%d", w.id, w.writes), Count: contentOf(old).Count + 1},
	}
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: old.ResourceVersion, UID: old.UID},
		Data:       map[string]string{"v": o.Content.Value, "n": fmt.Sprint(o.Content.Count)},
	}
	result := &corev1.ConfigMap{}
	o.Call = w.log.now()
	switch {
	case err != nil:
		o.Type = watch.Added
		err = w.request(http.MethodPost, "", next).Do(ctx).Into(result)
	case w.random.IntN(8) == 0:
		o.Type, o.Content = watch.Deleted, robustness.Content{}
		err = w.request(http.MethodDelete, name, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion},
		}).Do(ctx).Error()
	default:
		o.Type = watch.Modified
		err = w.request(http.MethodPut, name, next).Do(ctx).Into(result)
	}
	if isRefusal(err) {
		w.log.refuse()
		return
	}
	o.Unknown, o.Version = err != nil, result.ResourceVersion
	w.log.add(o)
}

// request is made once: a client that tries again by itself cannot say what an answer is for.
func (w *writer) request(verb, name string, body any) *rest.Request {
	r := w.client.Verb(verb).Namespace(namespace).Resource("configmaps").MaxRetries(0)
	if name != "" {
		r = r.Name(name)
	}
	if body != nil {
		r = r.Body(body)
	}
	return r
}

// isRefusal reports whether an error says that nothing was written.
func isRefusal(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err)
}

// lister makes consistent lists.
func (w *writer) list(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			w.listOnce()
		}
	}
}

func (w *writer) listOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := robustness.Operation{Client: w.id, Call: w.log.now(), Listed: map[string]string{}, Contents: map[string]robustness.Content{}}
	list := &corev1.ConfigMapList{}
	err := w.request(http.MethodGet, "", nil).VersionedParams(&metav1.ListOptions{}, scheme.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return
	}
	for i := range list.Items {
		obj := &list.Items[i]
		o.Listed[store.KeyOf(obj)] = obj.ResourceVersion
		o.Contents[obj.ResourceVersion] = contentOf(obj)
	}
	o.Version = list.ResourceVersion
	w.log.add(o)
}
