package controllerruntime_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestLean: a Get of a lean kind makes one request for the one name, the object is followed, and it
// is let go when it is not read for a while. Nothing else is requested.
func TestLean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{ReaderFailOnMissingInformer: true})
		for i := range 100 {
			r.put(fmt.Sprint("other", i), "1")
		}
		r.put("tls", "1")
		var notStarted *cache.ErrCacheNotStarted
		require.ErrorAs(t, r.Get(t.Context(), keyOf("ns", "tls"), &corev1.Secret{}), &notStarted)
		start(t, r)
		require.Empty(t, r.requests())
		const watch = "watch secrets namespace=ns match=NotOlderThan fields=metadata.name="
		for range 3 {
			require.Equal(t, "1", r.value("tls"))
		}
		require.Equal(t, []string{watch + "tls initial=true"}, r.requests())
		r.put("tls", "2")
		synctest.Wait()
		require.Equal(t, "2", r.value("tls"))
		require.Equal(t, "none", r.value("later"))
		r.put("later", "1")
		synctest.Wait()
		require.Equal(t, "1", r.value("later"), "a name that has no object is followed too")
		require.Equal(t, []string{watch + "tls initial=true", watch + "later initial=true"}, r.requests())

		for range 10 {
			time.Sleep(time.Minute)
			require.Equal(t, "2", r.value("tls"))
		}
		r.secrets.Server().AwaitWatches(1)
		r.secrets.Delete(secret("later", ""))
		require.Equal(t, "none", r.value("later"))
		require.Len(t, r.requests(), 3, "a name that was let go is read again")
		require.NoError(t, r.RemoveInformer(t.Context(), &corev1.Secret{}))
		r.secrets.Server().AwaitWatches(0)
		require.Equal(t, "2", r.value("tls"))
	})
}

// TestLeanForms: each form has objects of its own, and readers own what they get.
func TestLeanForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
		obj := secret("tls", "1")
		obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: fieldsv1.Of("{}")}}
		r.secrets.Create(obj)
		start(t, r)
		var owned, shared, sharedToo corev1.Secret
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "tls"), &owned))
		require.Empty(t, owned.ManagedFields)
		owned.Data["value"][0] = 'x'
		require.Equal(t, "1", r.value("tls"))
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "tls"), &shared, client.UnsafeDisableDeepCopy))
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "tls"), &sharedToo, client.UnsafeDisableDeepCopy))
		require.Same(t, &shared.Data["value"][0], &sharedToo.Data["value"][0])

		var document unstructured.Unstructured
		document.SetGroupVersionKind(ofSecrets)
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "tls"), &document))
		value, _, err := unstructured.NestedString(document.Object, "data", "value")
		require.NoError(t, err)
		require.Equal(t, "MQ==", value)
		require.Len(t, r.requests(), 2)

		held := metadataOfSecrets()
		require.NoError(t, r.Get(t.Context(), keyOf("ns", "tls"), held))
		require.Equal(t, "watch secrets match=NotOlderThan initial=true", r.requests()[2], "metadata is that of all objects")
	})
}

// TestLeanRefuses: what a cache of some objects cannot answer is an error that says so, before any
// request.
func TestLeanRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		r.put("tls", "1")
		start(t, r)
		documents := &unstructured.UnstructuredList{}
		documents.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		for _, list := range []client.ObjectList{&corev1.SecretList{}, documents} {
			err := r.List(t.Context(), list, client.InNamespace("ns"))
			require.ErrorIs(t, err, controllerruntime.ErrLean)
			require.ErrorContains(t, err, "list Secret: ")
			require.ErrorContains(t, err, "list it as metav1.PartialObjectMetadataList, or take the kind out of Lean")
		}
		_, err := r.GetInformer(t.Context(), &corev1.Secret{})
		require.ErrorIs(t, err, controllerruntime.ErrLean)
		require.ErrorContains(t, err, "builder.OnlyMetadata")
		_, err = r.GetInformerForKind(t.Context(), ofSecrets)
		require.ErrorIs(t, err, controllerruntime.ErrLean)
		err = r.IndexField(t.Context(), &corev1.Secret{}, "type", func(client.Object) []string { return nil })
		require.ErrorIs(t, err, controllerruntime.ErrLean)
		require.ErrorContains(t, err, "index its metadata")
		require.Empty(t, r.requests())
		require.Empty(t, r.Status())

		// All of this works with metadata.
		require.NoError(t, r.IndexField(t.Context(), metadataOfSecrets(), "app", byApp))
		informer, err := r.GetInformer(t.Context(), metadataOfSecrets())
		require.NoError(t, err)
		var added []string
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			added = append(added, obj.(*metav1.PartialObjectMetadata).Name)
		}})
		require.NoError(t, err)
		found := metadataList()
		require.NoError(t, r.List(t.Context(), found, client.MatchingFields{"app": "tls"}))
		require.Len(t, found.Items, 1)
		synctest.Wait()
		require.Equal(t, []string{"tls"}, added)
		require.Len(t, r.requests(), 1)
	})
	secrets := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	for want, option := range map[string]controllerruntime.Option{
		"metadata is kept of all objects": controllerruntime.Lean(metadataOfSecrets()),
		"no kind is registered":           controllerruntime.Lean(&strange{}),
		"give a positive duration":        controllerruntime.LeanIdle(-1),
	} {
		_, err := controllerruntime.NewCacheWith(option)(secrets.Server().Config(), cache.Options{Mapper: mapper()})
		require.ErrorContains(t, err, want)
	}
}

// TestLeanScope: selectors and namespaces of the options hold for names: an object outside of them
// is not found.
func TestLeanScope(t *testing.T) {
	opaque := fields.OneTermEqualSelector("type", string(corev1.SecretTypeOpaque))
	for name, row := range map[string]struct {
		of      cache.ByObject
		found   []string
		request string // for "tls"; none if it can be told without
	}{
		"labels": {cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"app": "db"})}, []string{"db"}, "labels=app=db fields=metadata.name=tls"},
		"fields": {cache.ByObject{Field: opaque}, []string{"tls", "db"}, "fields=metadata.name=tls,type=Opaque"},
		"a name": {cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", "db")}, []string{"db"}, ""},
		"a namespace": {
			cache.ByObject{Namespaces: map[string]cache.Config{"ns": {FieldSelector: opaque}, "empty": {}}},
			[]string{"tls", "db"}, "fields=metadata.name=tls,type=Opaque",
		},
		"all other namespaces": {
			cache.ByObject{Namespaces: map[string]cache.Config{"ns": {LabelSelector: labels.Everything()}, cache.AllNamespaces: {FieldSelector: opaque}}},
			[]string{"tls", "db", "typed"}, "fields=metadata.name=tls",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLeanRig(t, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: row.of}})
				r.put("tls", "1")
				r.put("db", "1")
				other := secret("typed", "1")
				other.Type = "example.com/other"
				r.secrets.Create(other)
				start(t, r)
				var found []string
				for _, name := range []string{"tls", "db", "typed"} {
					if r.value(name) == "1" {
						found = append(found, name)
					}
				}
				require.Equal(t, row.found, found)
				var asked string
				for _, request := range r.requests() {
					if strings.Contains(request, "name=tls") {
						asked = request
					}
				}
				require.Contains(t, asked, row.request)
				require.Equal(t, row.request == "", asked == "")
				if row.of.Namespaces != nil && len(found) < 3 {
					require.ErrorContains(t, r.Get(t.Context(), keyOf("other", "tls"), &corev1.Secret{}), `namespace "other"`)
				}
			})
		})
	}
}

// TestLeanFollowsEvents: a read is never older than the events that the metadata have told, though
// the watch of the name lags behind them.
func TestLeanFollowsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		informer, err := r.GetInformer(t.Context(), metadataOfSecrets())
		require.NoError(t, err)
		r.put("tls", "1")
		start(t, r)
		require.Equal(t, "1", r.value("tls"))
		require.Equal(t, "none", r.value("absent"))
		require.Len(t, r.requests(), 2, "the metadata tell that an object does not exist")

		told := make(chan string, 10)
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, obj any) { told <- obj.(*metav1.PartialObjectMetadata).ResourceVersion },
			DeleteFunc: func(any) { told <- "deleted" },
		})
		require.NoError(t, err)
		r.named.shut()
		changed := r.put("tls", "2")
		require.Equal(t, changed.ResourceVersion, <-told)
		err = r.Get(soon(t), keyOf("ns", "tls"), &corev1.Secret{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, apierrors.IsNotFound(err))
		r.named.unlock()
		require.Equal(t, "2", r.value("tls"))

		synctest.Wait()
		r.named.shut()
		r.secrets.Delete(secret("tls", ""))
		require.Equal(t, "deleted", <-told)
		require.Equal(t, "none", r.value("tls"), "the watch of the name has not told the deletion")
		r.named.unlock()
		synctest.Wait()
		require.Equal(t, "none", r.value("tls"))

		r.named.shut()
		r.put("tls", "3")
		synctest.Wait()
		require.ErrorIs(t, r.Get(soon(t), keyOf("ns", "tls"), &corev1.Secret{}), context.DeadlineExceeded)
		r.named.unlock()
		require.Equal(t, "3", r.value("tls"))
	})
}

// TestLeanBeforeMetadata: an object that was read is not lost because the metadata lag behind.
func TestLeanBeforeMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		start(t, r)
		require.Equal(t, "none", r.value("tls"))
		_, err := r.GetInformer(t.Context(), metadataOfSecrets())
		require.NoError(t, err)
		synctest.Wait()
		r.unnamed.shut()
		r.put("tls", "1")
		synctest.Wait()
		require.Equal(t, "1", r.value("tls"))
		r.unnamed.unlock()
		synctest.Wait()
		require.Equal(t, "1", r.value("tls"))
	})
}

// TestLeanWithoutServer: while the server is away, an object that was read stays as it was, as in a
// full cache, and one that was not is waited for.
func TestLeanWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		r.put("tls", "1")
		start(t, r)
		require.Equal(t, "1", r.value("tls"))
		require.Equal(t, "none", r.value("absent"))
		away := r.secrets.Fail(listwatchtest.Watch, apierrors.NewServiceUnavailable("away"), listwatchtest.UntilLifted())
		r.secrets.Disconnect()
		time.Sleep(time.Minute)
		require.Equal(t, "1", r.value("tls"))
		require.Equal(t, "none", r.value("absent"))
		err := r.Get(soon(t), keyOf("ns", "db"), &corev1.Secret{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "away")
		require.False(t, apierrors.IsNotFound(err))
		away.Lift()
		require.Equal(t, "none", r.value("db"))
	})
}

// TestLeanByResourceNames: rights for the names are enough, and a name without them is an error at
// once. A missing resource is no missing object.
func TestLeanByResourceNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		r.put("tls", "1")
		r.put("db", "1")
		resource := schema.GroupResource{Resource: "secrets"}
		r.secrets.Intercept(func(w http.ResponseWriter, request *http.Request, server http.Handler) {
			if request.URL.Query().Get("fieldSelector") == "metadata.name=tls" {
				server.ServeHTTP(w, request)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			status := apierrors.NewForbidden(resource, "", nil).Status()
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`, status.Message)
		}, listwatchtest.On(listwatchtest.List, listwatchtest.Watch), listwatchtest.UntilLifted())
		start(t, r)
		require.Equal(t, "1", r.value("tls"))
		err := r.Get(t.Context(), keyOf("ns", "db"), &corev1.Secret{})
		require.True(t, apierrors.IsForbidden(err), err)
		require.ErrorContains(t, err, "controllerruntime: get Secret ns/db: ")
	})
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		r.secrets.Fail(listwatchtest.Watch, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, ""), listwatchtest.UntilLifted())
		start(t, r)
		err := r.Get(soon(t), keyOf("ns", "tls"), &corev1.Secret{})
		require.True(t, meta.IsNoMatchError(err), "%v", err)
		require.False(t, apierrors.IsNotFound(err))
	})
}
