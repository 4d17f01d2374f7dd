package status_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
)

// credentials is a program's own type for Secrets.
type credentials struct {
	metav1.ObjectMeta `json:"metadata"`
	User              string
}

func (c *credentials) DeepCopyObject() runtime.Object { copied := *c; return &copied }

func (c *credentials) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// secretWith is a Secret as kubectl apply leaves it.
func secretWith(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"stringData":{"password":"` + value + `"}}`, "copy": value,
		}},
		StringData: map[string]string{"password": value},
	}
}

// TestNoValueOfASecretOnThePage: whatever holds the Secrets, as whatever Go type, no form of the
// page and no answer of it has a value of theirs.
func TestNoValueOfASecretOnThePage(t *testing.T) {
	server := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	server.Create(secretWith("hunter1"))
	client, err := listwatch.NewRESTClient(server.Server().Listen(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	page := status.Quickly(&status.Handler{Differences: true, Verify: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	copies := 0
	track := func(name string, one metrics.Reporter, run func(context.Context) error, synced func(context.Context) error) {
		t.Helper()
		copies++
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		require.NoError(t, synced(ctx))
		page.Track(name, one)
	}
	typed := listwatch.FromClient[corev1.Secret](client, "secrets")
	secrets := informer.New(typed)
	track("typed", secrets, secrets.Run, secrets.WaitSynced)
	partial := informer.New(listwatch.FromClient[metav1.PartialObjectMetadata](client, "secrets"))
	track("metadata", partial, partial.Run, partial.WaitSynced)
	documents := informer.New(listwatch.FromClientLike(client, "secrets", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}))
	track("documents", documents, documents.Run, documents.WaitSynced)
	projection := func(s *corev1.Secret) *credentials {
		return &credentials{ObjectMeta: s.ObjectMeta, User: string(s.Data["password"])}
	}
	projected := informer.New(listwatch.Project(typed, projection))
	track("projected", projected, projected.Run, projected.WaitSynced)
	union := informer.NewUnion[*credentials]()
	_, err = union.Add("all", listwatch.Project(typed, projection))
	require.NoError(t, err)
	track("union", union, union.Run, union.WaitSynced)
	plain := reflector.New(listwatch.Project(typed, projection), store.NewIndexer[*credentials]())
	track("reflector", plain, plain.Run, plain.WaitSynced)
	unknown := informer.New(unnamed[*credentials]{listwatch.Project(typed, projection)})
	track("unnamed", unknown, unknown.Run, unknown.WaitSynced)
	cache, err := watchcache.NewCache(builtin.Of[*corev1.Secret]().Kind)
	require.NoError(t, err)
	fill := reflector.New(typed, cache)
	track("cache", cache, fill.Run, fill.WaitSynced)
	relay, err := apiserver.NewServer()
	require.NoError(t, err)
	defer relay.Close()
	apiserver.ServeCache(relay, cache, builtin.Of[*corev1.Secret]().View, apiserver.FilledBy(fill))
	page.Track("relay", relay)
	copies++

	url := serve(t, page)
	frames := watch(ctx, t, url)
	frames.until(t, func(f frame) bool { return len(f.Rows) > 0 })
	server.Update(secretWith("hunter2"))
	changes := map[string]int{}
	frames.until(t, func(f frame) bool {
		text := fmt.Sprint(f)
		require.NotContains(t, text, "hunter")
		for _, c := range f.Changes {
			require.Equal(t, "modified", c.Op)
			changes[c.Copy] = c.Number
		}
		return len(changes) == copies
	})
	for copied, number := range changes {
		response, body := get(t, fmt.Sprint(url, "?difference=", number), "application/json")
		require.Equal(t, http.StatusUnprocessableEntity, response.StatusCode, "%s: %s", copied, body)
		require.Contains(t, body, "secret", copied)
	}
	for _, accept := range []string{"text/plain", "application/json", "text/html"} {
		_, body := get(t, url, accept)
		require.Contains(t, body, "metadata", accept)
		require.NotContains(t, body, "hunter", accept)
	}
	server.Update(secretWith("hunter3"))
	for _, name := range []string{"typed", "metadata", "documents", "projected"} {
		answer, err := http.Post(url+"?verify="+name, "text/plain", nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		require.NotContains(t, string(body), "hunter")
	}
}

// TestNoLastAppliedConfigurationOnThePage: a difference has no copy of the whole object.
func TestNoLastAppliedConfigurationOnThePage(t *testing.T) {
	applied := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{
				corev1.LastAppliedConfigAnnotation: "configuration " + value, "owner": "team " + value,
			}},
			Data: map[string]string{"key": "plain " + value},
		}
	}
	var followed followed
	page := status.Quickly(&status.Handler{Differences: true})
	page.Track("all", &followed)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	url := serve(t, page)
	frames := watch(ctx, t, url)
	frames.until(t, func(f frame) bool { return f.Rows["all"] != "" })
	followed.changes.Store(&[]metrics.Change{{Copy: "all", Key: "a", Old: applied("one"), New: applied("two")}})
	frames.until(t, func(f frame) bool { return len(f.Changes) == 1 })
	_, body := get(t, url+"?difference=1", "*/*")
	require.JSONEq(t, `{"metadata":{"annotations":{"owner":"team two"}},"data":{"key":"plain two"}}`, body)
	require.False(t, strings.Contains(body, "configuration"))
}

// unnamed is a source that does not name its resource.
type unnamed[T store.Object] struct{ listwatch.ListerWatcher[T] }
