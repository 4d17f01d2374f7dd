package correctness

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/testing/correctness"
)

func one[T any](of ...T) T { return of[rand.IntN(len(of))] }

// Few names, some of which begin like others, so that writes meet.
func oneNamespace() string { return one("ns-1", "ns-2", "ns-11") }
func oneName() string      { return one("pod-1", "pod-11", "pod-2") }

var errRejected = errors.New("rejected by the client")

func attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	p := object.(*example.Pod)
	return p.Labels, fields.Set{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": p.Spec.NodeName}, nil
}

func (c *traffic) predicate(name, namespace string) storage.SelectionPredicate {
	p := storage.SelectionPredicate{Label: labels.Everything(), Field: fields.Everything(), GetAttrs: attributes}
	selectors := []fields.Selector{
		p.Field, p.Field, fields.OneTermEqualSelector("metadata.name", name), fields.OneTermNotEqualSelector("metadata.name", name),
		// kube-apiserver makes metadata.namespace=NS the scope, and its tokens are of another one.
		fields.OneTermNotEqualSelector("metadata.namespace", namespace),
	}
	if c.pods() {
		selectors = append(selectors, fields.OneTermEqualSelector("spec.nodeName", "n1"),
			fields.OneTermNotEqualSelector("spec.nodeName", "n1"), fields.OneTermEqualSelector("spec.nodeName", ""))
	}
	p.Field = one(selectors...)
	if rand.IntN(2) == 0 {
		p.Label, _ = labels.Parse(one("app=a", "app!=a", "app in (a,b)", "app notin (a,b)", "app", "!app"))
	}
	return p
}

// version is one to read at: none, 0, the last one that was seen, or one before it.
func (c *traffic) version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	past := strconv.FormatUint(max(c.base, c.seen-min(c.seen, rand.Uint64N(150))), 10)
	return one("", "", "0", strconv.FormatUint(c.seen, 10), past, past)
}

// preconditions are those of the object that the client saw last, or none.
func (c *traffic) preconditions(last *example.Pod) *storage.Preconditions {
	if last == nil || rand.IntN(3) > 0 {
		return nil
	}
	if c.pods() || rand.IntN(2) == 0 { // the first write of a pod's deletion changes its version
		return &storage.Preconditions{UID: new(last.UID)}
	}
	return &storage.Preconditions{ResourceVersion: new(last.ResourceVersion)}
}

func (c *traffic) creation(namespace, name string) correctness.CreateRequest {
	p := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if app := one("", "a", "b", "c"); app != "" {
		p.Labels = map[string]string{"app": app}
	}
	if c.pods() {
		p.Spec.NodeName = one("", "n1", "n2")
	}
	return correctness.CreateRequest{Object: p}
}

func (c *traffic) deletion(last *example.Pod) correctness.DeleteRequest {
	req := correctness.DeleteRequest{Preconditions: c.preconditions(last)}
	if rand.IntN(4) == 0 {
		app := one("a", "b")
		req.ValidateDeletion = func(_ context.Context, object runtime.Object) error {
			if object.(*example.Pod).Labels["app"] == app {
				return errRejected
			}
			return nil
		}
	}
	return req
}

func (c *traffic) update(last *example.Pod) correctness.UpdateRequest {
	note, app, rejected := strconv.Itoa(rand.IntN(10000)), one("", "a", "b", "c"), one("-", "-", "a", "b")
	same := rand.IntN(7) == 0
	return correctness.UpdateRequest{
		Preconditions: c.preconditions(last),
		UpdateFunc: func(object runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			p := object.(*example.Pod).DeepCopy()
			if p.Labels["app"] == rejected {
				return nil, nil, errRejected
			}
			if same {
				return p, nil, nil
			}
			p.Annotations, p.Labels = map[string]string{"note": note}, nil
			if app != "" {
				p.Labels = map[string]string{"app": app}
			}
			return p, nil, nil
		},
	}
}

// list is a list of all, of a namespace or of one object, and its key.
func (c *traffic) list(namespace, name string) (at string, options storage.ListOptions) {
	key := "/pods/" + namespace + "/" + name
	options = storage.ListOptions{Predicate: c.predicate(name, namespace), ResourceVersion: c.version()}
	at = one("/pods/", "/pods/", "/pods/"+namespace, key)
	options.Recursive = at != key
	if name, ok := options.Predicate.MatchesSingle(); ok && at == "/pods/"+namespace {
		at, options.Recursive = at+"/"+name, false // kube-apiserver makes it the scope
	}
	if v := options.ResourceVersion; v != "" {
		options.ResourceVersionMatch = one("", metav1.ResourceVersionMatchNotOlderThan, metav1.ResourceVersionMatchExact)
		if v == "0" && options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
			options.ResourceVersionMatch = ""
		}
	}
	if options.ResourceVersion != "0" {
		options.Predicate.Limit = one[int64](0, 0, 1, 2)
	}
	return at, options
}

func (c *traffic) watchOf(namespace, name string) correctness.WatchRequest {
	key := "/pods/" + namespace + "/" + name
	at := one("/pods/", "/pods/"+namespace, key)
	options := storage.ListOptions{Recursive: at != key, Predicate: c.predicate(name, namespace), ResourceVersion: c.version()}
	options.Predicate.AllowWatchBookmarks = rand.IntN(2) == 0
	if rand.IntN(2) == 0 {
		options.Predicate.AllowWatchBookmarks, options.SendInitialEvents = true, new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	} else if options.ResourceVersion == "" || options.ResourceVersion == "0" {
		options.SendInitialEvents, options.ResourceVersionMatch = new(false), metav1.ResourceVersionMatchNotOlderThan
	}
	return correctness.WatchRequest{Key: at, Options: options}
}
