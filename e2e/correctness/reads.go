package correctness

import (
	"context"
	"errors"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/testing/correctness"
	"k8s.io/client-go/rest"
)

func (s *Store) get(ctx context.Context, key, version string) (*corev1.Pod, error) {
	var got corev1.Pod
	r := s.request(s.client.Get(), key)
	if version != "" {
		r = r.Param("resourceVersion", s.toReal(version))
	}
	err := r.Do(ctx).Into(&got)
	return &got, err
}

func (s *Store) Get(ctx context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if _, err := storage.PrepareKey("", key, false); err != nil {
		return err
	}
	got, err := s.get(ctx, key, options.ResourceVersion)
	defer s.lock()()
	switch {
	case err == nil:
		*out.(*example.Pod) = *s.fromPod(got)
		return nil
	case apierrors.IsNotFound(err) && options.IgnoreNotFound:
		*out.(*example.Pod) = example.Pod{}
		return nil
	case apierrors.IsNotFound(err):
		return s.notFound(key)
	case isRefusal(err):
		if _, e := s.Versioner().ParseResourceVersion(options.ResourceVersion); e != nil {
			return e
		}
	}
	return err
}

// isRefusal is for a request that is wrong in itself. kube-apiserver answers some with a 500.
func isRefusal(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == ""
}

// notFound has the store's version, which no answer over HTTP has.
func (s *Store) notFound(key string) error {
	if s.versions == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	return storage.NewKeyNotFoundError(key, int64(s.versions.Latest()))
}

// scope is the request for a storage key. What no URL can ask for is a selection of nothing.
func (s *Store) scope(key string, options storage.ListOptions) *rest.Request {
	namespace, name := split(key)
	field := options.Predicate.Field
	if options.Recursive == (name != "") {
		field = fields.AndSelectors(field, fields.OneTermEqualSelector("metadata.name", "no-such-pod"))
	} else if name != "" {
		field = fields.AndSelectors(field, fields.OneTermEqualSelector("metadata.name", name))
	}
	if namespace != "" {
		namespace = "/" + namespace
	}
	r := s.request(s.client.Get(), "/pods"+namespace)
	if !field.Empty() {
		r = r.Param("fieldSelector", field.String())
	}
	if l := options.Predicate.Label; l != nil && !l.Empty() {
		r = r.Param("labelSelector", l.String())
	}
	if options.ResourceVersion != "" {
		r = r.Param("resourceVersion", s.toReal(options.ResourceVersion))
	}
	return r
}

func (s *Store) GetList(ctx context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	prepared, err := storage.PrepareKey("", key, options.Recursive)
	if err != nil {
		return err
	}
	r := s.scope(key, options)
	if options.ResourceVersionMatch != "" {
		r = r.Param("resourceVersionMatch", string(options.ResourceVersionMatch))
	}
	if options.Predicate.Limit > 0 {
		r = r.Param("limit", strconv.FormatInt(options.Predicate.Limit, 10))
	}
	if options.Predicate.Continue != "" && options.Recursive {
		r = r.Param("continue", retoken(options.Predicate.Continue, s.realVersion))
	}
	var got corev1.PodList
	err = r.Do(ctx).Into(&got)
	defer s.lock()()
	if err != nil {
		return s.listError(err, prepared, options)
	}
	list := out.(*example.PodList)
	*list = example.PodList{ListMeta: got.ListMeta, Items: []example.Pod{}}
	list.ResourceVersion = s.toVirtual(got.ResourceVersion)
	list.Continue = retoken(got.Continue, s.virtualVersion)
	for i := range got.Items {
		list.Items = append(list.Items, *s.fromPod(&got.Items[i]))
	}
	return nil
}

// listError is the error of the server in the words of the model, if it is of the kind that the
// request deserves.
func (s *Store) listError(err error, prepared string, options storage.ListOptions) error {
	_, version, continueKey, deserved := correctness.ListReadConsistency(prepared, s.Versioner(), options)
	switch {
	case isRefusal(err) && deserved != nil:
		return deserved
	case apierrors.IsResourceExpired(err) && continueKey != "":
		e := apierrors.NewResourceExpired(compactedContinue)
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			e.ErrStatus.Continue = retoken(status.ErrStatus.Continue, s.virtualVersion)
		}
		return e
	case apierrors.IsResourceExpired(err) && version > 0:
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return err
}

const compactedContinue = "The provided continue parameter is too old to display a consistent list result. " +
	"You can start a new list without the continue parameter, or use the continue token in this response " +
	"to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - " +
	"objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."

func (s *Store) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	if _, err := storage.PrepareKey("", key, options.Recursive); err != nil {
		return nil, err
	}
	r := s.scope(key, options).Param("watch", "true")
	if options.Predicate.AllowWatchBookmarks {
		r = r.Param("allowWatchBookmarks", "true")
	}
	// A watch may name a match only with sendInitialEvents, and then this one.
	v := options.ResourceVersion
	if send := options.SendInitialEvents; send != nil && (*send || v == "" || v == "0") {
		r = r.Param("sendInitialEvents", strconv.FormatBool(*send)).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	w, err := r.Watch(ctx)
	if err != nil {
		if _, e := s.Versioner().ParseResourceVersion(v); e != nil && isRefusal(err) {
			return nil, e
		}
		return nil, err
	}
	if s.lose != nil {
		w = watch.Filter(w, func(e watch.Event) (watch.Event, bool) { return e, !s.lose(e) })
	}
	if s.versions == nil {
		return watch.Filter(w, s.event), nil
	}
	// Events wait for their reader, so that the versions of all writes are known by then.
	late := &lateWatch{Interface: w, out: make(chan watch.Event), done: make(chan struct{})}
	go late.run(s)
	return late, nil
}

// event is an event in the words of the model, and whether the model has it at all.
func (s *Store) event(e watch.Event) (watch.Event, bool) {
	defer s.lock()()
	if p, ok := e.Object.(*corev1.Pod); ok {
		if e.Type == watch.Deleted {
			p = p.DeepCopy()
			p.DeletionTimestamp = nil
		} else if isMark(p) && e.Type == watch.Modified && s.versions != nil {
			return e, false
		}
		got := s.fromPod(p)
		if e.Type == watch.Bookmark {
			// Only its version and its annotations mean anything.
			got = &example.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: got.ResourceVersion, Annotations: p.Annotations}}
		}
		e.Object = got
	}
	return e, true
}

// lateWatch keeps events until they are read.
type lateWatch struct {
	watch.Interface
	out  chan watch.Event
	done chan struct{}
	once sync.Once
}

func (w *lateWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *lateWatch) Stop() {
	w.once.Do(func() { close(w.done); w.Interface.Stop() })
}

func (w *lateWatch) run(s *Store) {
	defer close(w.out)
	var waiting []watch.Event
	in := w.Interface.ResultChan()
	for in != nil || len(waiting) > 0 {
		var out chan watch.Event
		var first watch.Event
		if len(waiting) > 0 {
			out = w.out
			var ok bool
			if first, ok = s.event(waiting[0]); !ok {
				waiting = waiting[1:]
				continue
			}
		}
		select {
		case e, ok := <-in:
			if !ok {
				in = nil
				continue
			}
			waiting = append(waiting, e)
		case out <- first:
			waiting = waiting[1:]
		case <-w.done:
			return
		}
	}
}
