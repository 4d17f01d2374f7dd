package correctness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/rest"
)

// Store is a storage.Interface of pods that are behind an API server. An object keeps its names,
// labels, annotations, node, UID and version on the way; the rest is the server's.
type Store struct {
	client   *rest.RESTClient
	resource string // pods, or another with namespaces, whose objects are read as if they were pods

	// With versions, the store is for one writer: it gives the server's versions numbers without
	// gaps, from 1 on, and a new object has the UID that was asked for. Without, all is the
	// server's.
	mu        sync.Mutex
	versions  *Versions
	uids      map[types.UID]types.UID
	compacted int64

	// lose, if it is set, says which events of watches get lost on the way.
	lose func(watch.Event) bool
}

var _ storage.Interface = (*Store)(nil)

func (s *Store) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *Store) request(r *rest.Request, key string) *rest.Request {
	namespace, name := split(key)
	r = r.Resource(s.resource).MaxRetries(0)
	if namespace != "" {
		r = r.Namespace(namespace)
	}
	if name != "" {
		r = r.Name(name)
	}
	return r
}

func split(key string) (namespace, name string) {
	parts := strings.Split(strings.Trim(strings.TrimPrefix(key, "/pods"), "/"), "/")
	if len(parts) > 1 {
		return parts[0], parts[1]
	}
	return parts[0], ""
}

func (s *Store) lock() func() {
	if s.versions == nil {
		return func() {}
	}
	s.mu.Lock()
	return s.mu.Unlock
}

func (s *Store) Create(ctx context.Context, key string, object, out runtime.Object, _ uint64) error {
	if _, err := storage.PrepareKey("", key, false); err != nil {
		return err
	}
	defer s.lock()()
	return s.create(ctx, key, object.(*example.Pod), out)
}

func (s *Store) create(ctx context.Context, key string, in *example.Pod, out runtime.Object) error {
	var got corev1.Pod
	err := s.request(s.client.Post(), strings.TrimSuffix(key, "/"+in.Name)).Body(s.toPod(in)).Do(ctx).Into(&got)
	switch {
	case err == nil:
		s.written(&got, in.UID)
		return s.answer(&got, in, out)
	case apierrors.IsAlreadyExists(err):
		return storage.NewKeyExistsError(key, 0)
	case in.ResourceVersion != "" && strings.Contains(err.Error(), storage.ErrResourceVersionSetOnCreate.Error()):
		return storage.ErrResourceVersionSetOnCreate
	}
	return err
}

// answer checks that the server kept what it was given.
func (s *Store) answer(got *corev1.Pod, sent *example.Pod, out runtime.Object) error {
	p := s.fromPod(got)
	p.DeletionTimestamp = nil
	if p.Namespace != sent.Namespace || p.Name != sent.Name || p.Spec.NodeName != sent.Spec.NodeName ||
		!reflect.DeepEqual(p.Labels, sent.Labels) || !reflect.DeepEqual(p.Annotations, sent.Annotations) {
		return fmt.Errorf("the server answered %+v to a write of %+v", p, sent)
	}
	*out.(*example.Pod) = *p
	return nil
}

// conflict is what the model says of an object that the server said has not the preconditions.
func (s *Store) conflict(ctx context.Context, key string, preconditions *storage.Preconditions, refusal error) error {
	got, err := s.get(ctx, key, "")
	if err != nil {
		return storage.NewInvalidObjError(key, refusal.Error())
	}
	if err := preconditions.Check(key, s.fromPod(got)); err != nil {
		return err
	}
	return storage.NewInvalidObjError(key, refusal.Error())
}

func (s *Store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	if _, err := storage.PrepareKey("", key, false); err != nil {
		return err
	}
	defer s.lock()()
	all := reflect.ValueOf(storage.ValidateObjectFunc(storage.ValidateAllObjectFunc)).Pointer()
	for {
		asked := false
		options := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: s.preconditions(preconditions)}
		if validate != nil && reflect.ValueOf(validate).Pointer() != all {
			// A server asks its own code. Here the client asks, and deletes what it asked about.
			got, err := s.get(ctx, key, "")
			if apierrors.IsNotFound(err) {
				return s.notFound(key)
			} else if err != nil {
				return err
			}
			p := s.fromPod(got)
			if preconditions.Check(key, p) == nil {
				if err := validate(ctx, p); err != nil {
					return err
				}
				asked = true
				options.Preconditions = &metav1.Preconditions{UID: &got.UID, ResourceVersion: &got.ResourceVersion}
			}
		}
		answer, err := s.request(s.client.Delete(), key).Body(options).Do(ctx).Get()
		switch {
		case err == nil:
			got, ok := answer.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("the answer to a DELETE is no object: %+v", answer)
			}
			got.DeletionTimestamp = nil
			s.written(got, "")
			*out.(*example.Pod) = *s.fromPod(got)
			return nil
		case apierrors.IsNotFound(err):
			return s.notFound(key)
		case apierrors.IsConflict(err) && asked:
			continue // the object has changed since
		case apierrors.IsConflict(err) && preconditions != nil:
			return s.conflict(ctx, key, preconditions, err)
		default:
			return err
		}
	}
}

func (s *Store) preconditions(p *storage.Preconditions) *metav1.Preconditions {
	if p == nil {
		return nil
	}
	real := &metav1.Preconditions{}
	if p.UID != nil {
		real.UID = new(s.toUID(*p.UID))
	}
	if p.ResourceVersion != nil {
		real.ResourceVersion = new(s.toReal(*p.ResourceVersion))
	}
	return real
}

func (s *Store) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	if _, err := storage.PrepareKey("", key, false); err != nil {
		return err
	}
	defer s.lock()()
	for tries := 0; ; {
		got, err := s.get(ctx, key, "")
		if apierrors.IsNotFound(err) {
			if !ignoreNotFound {
				return s.notFound(key)
			}
			if err = s.createBy(ctx, key, out, preconditions, update); storage.IsExist(err) {
				continue
			}
			return err
		} else if err != nil {
			return err
		}
		if isMark(got) {
			if tries++; tries > 2000 {
				return errors.New("a pod stays between the two writes of its deletion")
			}
			time.Sleep(time.Millisecond)
			continue
		}
		before := s.fromPod(got)
		if wrong := preconditions.Check(key, before); wrong != nil {
			return s.refused(ctx, key, got, preconditions, wrong)
		}
		version, _ := strconv.ParseUint(before.ResourceVersion, 10, 64)
		made, _, err := update(before.DeepCopy(), storage.ResponseMeta{ResourceVersion: version})
		if err != nil {
			return err
		}
		after := made.(*example.Pod)
		got.Labels, got.Annotations = after.Labels, after.Annotations
		var put corev1.Pod
		err = s.request(s.client.Put(), key).Body(got).Do(ctx).Into(&put)
		switch {
		case err == nil:
			s.written(&put, "")
			return s.answer(&put, after, out)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			continue
		}
		return err
	}
}

// createBy is an update of an object that there is not.
func (s *Store) createBy(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, update storage.UpdateFunc) error {
	if err := preconditions.Check(key, &example.Pod{}); err != nil {
		return err
	}
	made, _, err := update(&example.Pod{}, storage.ResponseMeta{})
	if err != nil {
		return err
	}
	return s.create(ctx, key, made.(*example.Pod), out)
}

// refused sends an update whose preconditions do not hold: the server has to refuse it, too.
func (s *Store) refused(ctx context.Context, key string, got *corev1.Pod, preconditions *storage.Preconditions, wrong error) error {
	p := s.preconditions(preconditions)
	if p.UID != nil {
		got.UID = *p.UID
	}
	got.ResourceVersion = ""
	if p.ResourceVersion != nil {
		got.ResourceVersion = *p.ResourceVersion
	}
	got.Annotations = map[string]string{"refused": "no"}
	err := s.request(s.client.Put(), key).Body(got).Do(ctx).Error()
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
		return fmt.Errorf("a PUT was not refused (%v): %w", err, wrong)
	}
	return wrong
}

func (s *Store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	var got corev1.PodList
	err := s.request(s.client.Get(), "/pods").Param("limit", "1").Do(ctx).Into(&got)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(got.ResourceVersion, 10, 64)
}

func (s *Store) CompactRevision() int64                              { return s.compacted }
func (s *Store) ReadinessCheck() error                               { return nil }
func (s *Store) RequestWatchProgress(context.Context) error          { return nil }
func (s *Store) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }
func (s *Store) Stats(context.Context) (storage.Stats, error)        { return storage.Stats{}, errNone }
func (s *Store) DeleteOnce(context.Context, string, *storage.ObjState, runtime.Object) error {
	return errNone
}

func (s *Store) UpdateOnce(context.Context, string, *storage.ObjState, runtime.Object, uint64, runtime.Object, bool) (*storage.ObjState, error) {
	return nil, errNone
}

var errNone = errors.New("not over HTTP")
