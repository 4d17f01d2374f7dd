package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/builtin"
)

// ownRig is a client that reads its own writes, and a gate that can hold its cache back.
type ownRig struct {
	client.Client
	t     *testing.T
	pods  *listwatchtest.Collection[*corev1.Pod]
	cache *controllerruntime.Cache
	gate  *gate
}

// own makes a rig whose gate holds back the watches whose path has the text in it.
func own(t *testing.T, path string, cacheOptions cache.Options, options client.CacheOptions) *ownRig {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	r := &ownRig{t: t, pods: pods, gate: newGate(pods, path), cache: newCache(t, pods, cacheOptions)}
	options.Reader = r.cache
	var err error
	r.Client, err = controllerruntime.NewClient(pods.Server().Config(), client.Options{Mapper: mapper(), Cache: &options})
	require.NoError(t, err)
	return r
}

// run makes pods a, b and on, the last one on a node, and starts the cache with a collection of
// each example's kind.
func (r *ownRig) run(examples ...client.Object) {
	direct, err := client.New(r.pods.Server().Config(), client.Options{Mapper: mapper()})
	require.NoError(r.t, err)
	for name, node := range map[string]string{"a": "", "b": "", "on": "n"} {
		p := valid("ns", name)
		p.Spec.NodeName = node // by a client, so that the server adds defaults
		require.NoError(r.t, direct.Create(r.t.Context(), p))
	}
	for _, example := range append(examples, &corev1.Pod{}) {
		_, err := r.cache.GetInformer(r.t.Context(), example)
		require.NoError(r.t, err)
	}
	start(r.t, r.cache)
	synctest.Wait()
}

// valid is a pod that the server takes.
func valid(namespace, name string) *corev1.Pod {
	p := pod(namespace, name, "")
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	return p
}

func keyOf(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// soon is a context for reads that are to wait in vain.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (r *ownRig) get(key client.ObjectKey) *corev1.Pod {
	p := &corev1.Pod{}
	require.NoError(r.t, r.Get(r.t.Context(), key, p))
	return p
}

// TestReadYourWrites: a read after a write waits until the cache shows it, and shows it then.
func TestReadYourWrites(t *testing.T) {
	labelled := func(r *ownRig, name string) error {
		if r.get(keyOf("ns", name)).Labels["own"] != "x" {
			return fmt.Errorf("%s lacks the label", name)
		}
		return nil
	}
	gone := func(r *ownRig, name string) error {
		if err := r.Get(r.t.Context(), keyOf("ns", name), &corev1.Pod{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %w", name, err)
		}
		return nil
	}
	terminating := func(r *ownRig, name string) error {
		if r.get(keyOf("ns", name)).DeletionTimestamp == nil {
			return fmt.Errorf("%s is not terminating", name)
		}
		return nil
	}
	label := func(p *corev1.Pod) *corev1.Pod { p.Labels["own"] = "x"; return p }
	nothing := func(*ownRig) {}
	finalizers := func(r *ownRig) {
		p := r.get(keyOf("ns", "a"))
		p.Finalizers = []string{"example.com/own"}
		require.NoError(r.t, r.Update(r.t.Context(), p))
		r.get(keyOf("ns", "a"))
	}
	for name, row := range map[string]struct {
		key     string
		prepare func(*ownRig)
		write   func(context.Context, *ownRig) error
		shows   func(r *ownRig, name string) error
	}{
		"create": {"new", nothing, func(ctx context.Context, r *ownRig) error {
			return r.Create(ctx, label(valid("ns", "new")))
		}, labelled},
		"update": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			return r.Update(ctx, label(r.get(keyOf("ns", "a"))))
		}, labelled},
		"patch": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			before := r.get(keyOf("ns", "a"))
			return r.Patch(ctx, label(before.DeepCopy()), client.MergeFrom(before))
		}, labelled},
		"patch of an unstructured object": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			u.SetNamespace("ns")
			u.SetName("a")
			return r.Patch(ctx, u, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"own":"x"}}}`)))
		}, labelled},
		"apply": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			u.SetNamespace("ns")
			u.SetName("a")
			u.SetLabels(map[string]string{"own": "x"})
			return r.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"), client.ForceOwnership)
		}, labelled},
		"status": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			p := r.get(keyOf("ns", "a"))
			p.Status.Phase = corev1.PodRunning
			return r.Status().Update(ctx, p)
		}, func(r *ownRig, name string) error {
			if phase := r.get(keyOf("ns", name)).Status.Phase; phase != corev1.PodRunning {
				return fmt.Errorf("it is %s", phase)
			}
			return nil
		}},
		"delete": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			return r.Delete(ctx, r.get(keyOf("ns", "a")))
		}, gone},
		"delete by name": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			return r.Delete(ctx, valid("ns", "a"))
		}, gone},
		"delete with a grace period": {"on", nothing, func(ctx context.Context, r *ownRig) error {
			return r.Delete(ctx, valid("ns", "on"))
		}, terminating},
		"delete at once, after a grace period": {"on", func(r *ownRig) {
			require.NoError(r.t, r.Delete(r.t.Context(), valid("ns", "on")))
			r.get(keyOf("ns", "on"))
		}, func(ctx context.Context, r *ownRig) error {
			return r.Delete(ctx, valid("ns", "on"), client.GracePeriodSeconds(0))
		}, gone},
		"delete with a finalizer": {"a", finalizers, func(ctx context.Context, r *ownRig) error {
			return r.Delete(ctx, valid("ns", "a"))
		}, terminating},
		"the last finalizer": {"a", func(r *ownRig) {
			finalizers(r)
			require.NoError(r.t, r.Delete(r.t.Context(), valid("ns", "a")))
		}, func(ctx context.Context, r *ownRig) error {
			p := r.get(keyOf("ns", "a"))
			p.Finalizers = nil
			return r.Update(ctx, p)
		}, gone},
		"delete all, one of which stays": {"a", finalizers, func(ctx context.Context, r *ownRig) error {
			return r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns"), client.MatchingLabels{"app": "a"})
		}, terminating},
		"delete all": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			return r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns"), client.MatchingLabels{"app": "a"})
		}, gone},
		"delete all of what is being deleted": {"a", func(r *ownRig) {
			finalizers(r)
			require.NoError(r.t, r.Delete(r.t.Context(), valid("ns", "a")))
		}, func(ctx context.Context, r *ownRig) error {
			p := r.get(keyOf("ns", "a"))
			r.gate.shut()
			r.pods.Update(label(p)) // by somebody else, and after it the deletion changes nothing
			return r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns"), client.MatchingLabels{"app": "a"})
		}, labelled},
		"delete and create": {"a", nothing, func(ctx context.Context, r *ownRig) error {
			require.NoError(r.t, r.Delete(ctx, valid("ns", "a")))
			return r.Create(ctx, label(valid("ns", "a")))
		}, labelled},
		"create and delete": {"new", nothing, func(ctx context.Context, r *ownRig) error {
			created := valid("ns", "new")
			require.NoError(r.t, r.Create(ctx, created))
			return r.Delete(ctx, valid("ns", "new"))
		}, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := own(t, "", cache.Options{}, client.CacheOptions{})
				r.run()
				row.prepare(r)
				synctest.Wait()
				began := time.Now()
				r.gate.shutBefore(r.pods) // not at once: a row may read first
				require.NoError(t, row.write(t.Context(), r))
				err := r.Get(soon(t), keyOf("ns", row.key), &corev1.Pod{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "read own writes of Pod: ")
				require.ErrorContains(t, err, "ns/"+row.key)
				require.ErrorIs(t, r.List(soon(t), &corev1.PodList{}, client.InNamespace("ns")), context.DeadlineExceeded)
				waited := time.Since(began)
				require.NotNil(t, r.get(keyOf("ns", "b")), "another object")
				require.NoError(t, r.List(t.Context(), &corev1.PodList{}, client.InNamespace("other")))
				require.Equal(t, waited, time.Since(began), "reads that are not concerned have waited")

				time.AfterFunc(time.Second, r.gate.unlock)
				require.NoError(t, row.shows(r, row.key))
				require.NoError(t, r.List(t.Context(), &corev1.PodList{}))
				require.Equal(t, waited+time.Second, time.Since(began))
				require.Zero(t, controllerruntime.Pending(r.Client), "they are forgotten")
			})
		})
	}
}

// TestOwnWritesInNamespaces: a namespace that lags behind holds up the reads of its own objects
// alone, and the error names it.
func TestOwnWritesInNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := own(t, "/namespaces/other/", cache.Options{
			DefaultNamespaces: map[string]cache.Config{"ns": {}, "other": {}},
		}, client.CacheOptions{})
		r.run()
		r.gate.shut()
		began := time.Now()
		require.NoError(t, r.Create(t.Context(), valid("other", "p")))
		created := valid("ns", "p")
		require.NoError(t, r.Create(t.Context(), created))
		require.Equal(t, created.UID, r.get(keyOf("ns", "p")).UID)
		require.NoError(t, r.Delete(t.Context(), valid("ns", "a")))
		require.NoError(t, r.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns"), client.MatchingLabels{"app": "b"}))
		for _, name := range []string{"a", "b"} {
			require.True(t, apierrors.IsNotFound(r.Get(t.Context(), keyOf("ns", name), &corev1.Pod{})))
		}
		var found corev1.PodList
		require.NoError(t, r.List(t.Context(), &found, client.InNamespace("ns")))
		require.Len(t, found.Items, 2)
		require.Zero(t, time.Since(began))

		err := r.Get(soon(t), keyOf("other", "p"), &corev1.Pod{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `read own writes of Pod: informer: wait for other/p at version`)
		require.ErrorContains(t, err, `member "other" is at version`)
		require.ErrorIs(t, r.List(soon(t), &corev1.PodList{}), context.DeadlineExceeded)
		time.AfterFunc(time.Second, r.gate.unlock)
		r.get(keyOf("other", "p"))
		require.NoError(t, r.List(t.Context(), &found))
		require.Len(t, found.Items, 3)
		require.Zero(t, controllerruntime.Pending(r.Client))
	})
}

// TestNotWaitedFor: no read waits for what the cache will never show.
func TestNotWaitedFor(t *testing.T) {
	document := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		u.SetNamespace("ns")
		u.SetName("a")
		return u
	}
	selected := labels.SelectorFromSet(labels.Set{"in": "x"})
	onNode := fields.OneTermEqualSelector("spec.nodeName", "n")
	for name, row := range map[string]struct {
		cache  cache.Options
		client client.CacheOptions
		write  func(context.Context, *ownRig) error
		read   func(context.Context, *ownRig) error // nil for a List
	}{
		"another namespace": {
			cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}}},
			write: func(ctx context.Context, r *ownRig) error { return r.Create(ctx, valid("other", "p")) },
		},
		"another label": {
			cache: cache.Options{DefaultLabelSelector: selected},
			write: func(ctx context.Context, r *ownRig) error {
				p := valid("ns", "p")
				require.NoError(r.t, r.Create(ctx, p))
				require.NoError(r.t, r.Update(ctx, p))
				return r.Delete(ctx, p)
			},
		},
		"another field": {
			cache: cache.Options{DefaultFieldSelector: onNode},
			write: func(ctx context.Context, r *ownRig) error { return r.Create(ctx, valid("ns", "p")) },
		},
		"deletions of what is not in scope": {
			cache: cache.Options{DefaultLabelSelector: selected},
			write: func(ctx context.Context, r *ownRig) error {
				require.NoError(r.t, r.Delete(ctx, valid("ns", "on")))
				require.NoError(r.t, r.Delete(ctx, valid("ns", "a")))
				return r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("ns"))
			},
		},
		"a kind that is not cached": {
			client: client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}}},
			write:  func(ctx context.Context, r *ownRig) error { return r.Create(ctx, valid("ns", "p")) },
		},
		"a form that is not cached": {
			write: func(ctx context.Context, r *ownRig) error { return r.Create(ctx, valid("ns", "p")) },
			read: func(ctx context.Context, r *ownRig) error {
				return r.Get(ctx, keyOf("ns", "a"), document())
			},
		},
		"a dry run": {
			write: func(ctx context.Context, r *ownRig) error {
				require.NoError(r.t, r.Create(ctx, valid("ns", "p"), client.DryRunAll))
				return r.Delete(ctx, valid("ns", "a"), client.DryRunAll)
			},
		},
		"a write that fails": {
			write: func(ctx context.Context, r *ownRig) error {
				require.Error(r.t, r.Create(ctx, valid("ns", "a")))
				require.Error(r.t, r.Delete(ctx, valid("ns", "none")))
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := own(t, "", row.cache, row.client)
				r.run()
				r.gate.shut()
				defer r.gate.unlock()
				require.NoError(t, row.write(t.Context(), r))
				if row.read == nil {
					row.read = func(ctx context.Context, r *ownRig) error { return r.List(ctx, &corev1.PodList{}) }
				}
				require.NoError(t, row.read(soon(t), r))
			})
		})
	}
}

// TestLeavesTheScope: a write takes an object out of the cache's selector, and the cache is waited
// for until it has dropped the object.
func TestLeavesTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := own(t, "", cache.Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"app": "a"})}, client.CacheOptions{})
		r.run()
		p := r.get(keyOf("ns", "a"))
		r.gate.shut()
		p.Labels["app"] = "left"
		require.NoError(t, r.Update(t.Context(), p))
		require.ErrorIs(t, r.Get(soon(t), keyOf("ns", "a"), &corev1.Pod{}), context.DeadlineExceeded)
		p.Labels["app"] = "a"
		require.NoError(t, r.Update(t.Context(), p))
		p.Labels["app"] = "left"
		require.NoError(t, r.Update(t.Context(), p))
		time.AfterFunc(time.Second, r.gate.unlock)
		require.True(t, apierrors.IsNotFound(r.Get(t.Context(), keyOf("ns", "a"), &corev1.Pod{})))
		p.Labels["app"] = "a"
		require.NoError(t, r.Update(t.Context(), p))
		require.Equal(t, p.ResourceVersion, r.get(keyOf("ns", "a")).ResourceVersion)
	})
}

// TestForms: what is written in one form is waited for in every form that the cache has.
func TestForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := own(t, "", cache.Options{}, client.CacheOptions{})
		podMetadata := func() *metav1.PartialObjectMetadata {
			m := &metav1.PartialObjectMetadata{}
			m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			return m
		}
		r.run(podMetadata())
		r.gate.shut()
		require.NoError(t, r.Create(t.Context(), valid("ns", "p")))
		require.ErrorIs(t, r.Get(soon(t), keyOf("ns", "p"), podMetadata()), context.DeadlineExceeded)
		r.gate.unlock()
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "p"), podMetadata()))
		r.get(keyOf("ns", "p"))
		require.Zero(t, controllerruntime.Pending(r.Client))
	})
}

// TestManyWrites: writes that nobody reads are kept up to a bound, and a later read waits for those
// too that are not kept one by one.
func TestManyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := own(t, "", cache.Options{}, client.CacheOptions{})
		r.run()
		r.gate.shut()
		const count = controllerruntime.MaxPending * 3 / 2
		for i := range count {
			require.NoError(t, r.Create(t.Context(), valid("ns", fmt.Sprint("p", i))))
			require.LessOrEqual(t, controllerruntime.Pending(r.Client), controllerruntime.MaxPending)
		}
		require.ErrorIs(t, r.Get(soon(t), keyOf("ns", "p0"), &corev1.Pod{}), context.DeadlineExceeded)
		time.AfterFunc(time.Second, r.gate.unlock)
		r.get(keyOf("ns", "p0"))
		var found corev1.PodList
		require.NoError(t, r.List(t.Context(), &found))
		require.Len(t, found.Items, count+3)
		require.Zero(t, controllerruntime.Pending(r.Client))

		// A collection that begins later is asked for what the others have shown.
		require.NoError(t, r.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		require.NoError(t, r.List(t.Context(), &found))
		require.Len(t, found.Items, count+3)
	})
}

// TestScale: the answer to a scale has the version of the scaled object.
func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		deployments := listwatchtest.Serve(pods.Server(), builtin.Of[*appsv1.Deployment]())
		held := deployments.Delay(time.Second, listwatchtest.On(listwatchtest.Watch), listwatchtest.UntilLifted())
		defer held.Lift()
		m := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
		m.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
		d := deployments.Create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}})
		config := pods.Server().Config()
		c, err := controllerruntime.NewCache(config, cache.Options{Mapper: m})
		require.NoError(t, err)
		own, err := controllerruntime.NewClient(config, client.Options{Mapper: m, Cache: &client.CacheOptions{Reader: c}})
		require.NoError(t, err)
		_, err = c.GetInformer(t.Context(), &appsv1.Deployment{})
		require.NoError(t, err)
		start(t, c)
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		d = d.DeepCopy()
		require.NoError(t, own.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)))
		var got appsv1.Deployment
		require.NoError(t, own.Get(t.Context(), keyOf("ns", "d"), &got))
		require.Equal(t, int32(3), *got.Spec.Replicas)
	})
}

// TestNewClient: what it refuses, and what it leaves to controller-runtime's.
func TestNewClient(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	config := pods.Server().Config()
	c := newCache(t, pods, cache.Options{})
	_, err := controllerruntime.NewClient(config, client.Options{Mapper: mapper(), Cache: &client.CacheOptions{Reader: struct{ client.Reader }{c}}})
	require.ErrorContains(t, err, "set NewCache to controllerruntime.NewCache too")
	_, err = controllerruntime.NewClient(nil, client.Options{Cache: &client.CacheOptions{Reader: c}})
	require.ErrorContains(t, err, "the config is nil")
	direct, err := controllerruntime.NewClient(config, client.Options{Mapper: mapper()})
	require.NoError(t, err)
	require.NoError(t, direct.Create(t.Context(), valid("ns", "p")))
	require.NoError(t, direct.Get(t.Context(), keyOf("ns", "p"), &corev1.Pod{}))
}
