package suites

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tributary-go/tributary/controllerruntime"
)

// realServer is an API server with RBAC, and a user without rights.
type realServer struct {
	t     *testing.T
	admin kubernetes.Interface
	root  *rest.Config // of the administrator
	user  *rest.Config
}

func newRealServer(t *testing.T) *realServer {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server: not under -short")
	}
	for _, asset := range strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets")))) {
		name, path, _ := strings.Cut(asset, "=")
		t.Setenv(name, path)
	}
	server := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
	root, err := server.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	user, err := server.AddUser(envtest.User{Name: "agent"}, nil)
	require.NoError(t, err)
	admin, err := kubernetes.NewForConfig(root)
	require.NoError(t, err)
	return &realServer{t, admin, root, user.Config()}
}

// permit gives the user rights in the default namespace.
func (s *realServer) permit(name string, rule rbacv1.PolicyRule) {
	s.t.Helper()
	of := metav1.ObjectMeta{Name: name}
	_, err := s.admin.RbacV1().Roles("default").Create(s.t.Context(), &rbacv1.Role{ObjectMeta: of, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = s.admin.RbacV1().RoleBindings("default").Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: of,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "agent"}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func (s *realServer) put(name, value string) {
	s.t.Helper()
	secrets := s.admin.CoreV1().Secrets("default")
	obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"value": value}}
	_, err := secrets.Update(s.t.Context(), obj, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(s.t.Context(), obj, metav1.CreateOptions{})
	}
	require.NoError(s.t, err)
}

// start runs a cache until the test ends.
func (s *realServer) start(config *rest.Config, options cache.Options, own ...controllerruntime.Option) *controllerruntime.Cache {
	s.t.Helper()
	made, err := controllerruntime.NewCacheWith(own...)(config, options)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
	require.True(s.t, made.WaitForCacheSync(s.t.Context()))
	return made.(*controllerruntime.Cache)
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// value reads a Secret.
func (s *realServer) value(reader client.Reader, name string) (string, error) {
	var obj corev1.Secret
	err := reader.Get(within(s.t, 10*time.Second), client.ObjectKey{Namespace: "default", Name: name}, &obj)
	return string(obj.Data["value"]), err
}

// paths notes what is requested of Secrets.
type paths struct {
	mu  sync.Mutex
	all []string
}

func (p *paths) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			p.mu.Lock()
			p.all = append(p.all, r.URL.Query().Get("fieldSelector"))
			p.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLeanByNameOnARealServer: rights to three names are enough for a lean kind, and nothing else
// is requested. What a full cache could do and a lean one cannot is an error.
func TestLeanByNameOnARealServer(t *testing.T) {
	s := newRealServer(t)
	for _, name := range []string{"tls", "db", "of-others"} {
		s.put(name, "1")
	}
	s.permit("by-name", rbacv1.PolicyRule{
		Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"tls", "db", "missing"},
	})
	requested := &paths{}
	config := rest.CopyConfig(s.user)
	config.Wrap(requested.wrap)
	c := s.start(config, cache.Options{ReaderFailOnMissingInformer: true}, controllerruntime.Lean(&corev1.Secret{}))
	is := func(name, want string) func() bool {
		return func() bool { got, err := s.value(c, name); return err == nil && got == want }
	}
	require.Eventually(t, is("tls", "1"), 10*time.Second, 100*time.Millisecond, "the server has read the roles")
	require.True(t, is("db", "1")())
	_, err := s.value(c, "missing")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	began := time.Now()
	_, err = s.value(c, "of-others")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Less(t, time.Since(began), 5*time.Second, "a refusal is not waited for")

	s.put("tls", "2")
	require.Eventually(t, is("tls", "2"), 5*time.Second, 5*time.Millisecond)
	s.put("missing", "1")
	require.Eventually(t, is("missing", "1"), 5*time.Second, 5*time.Millisecond)
	require.NoError(t, s.admin.CoreV1().Secrets("default").Delete(t.Context(), "missing", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { _, err := s.value(c, "missing"); return apierrors.IsNotFound(err) }, 5*time.Second, 5*time.Millisecond)

	require.ErrorIs(t, c.List(t.Context(), &corev1.SecretList{}), controllerruntime.ErrLean)
	_, err = c.GetInformer(t.Context(), &corev1.Secret{})
	require.ErrorIs(t, err, controllerruntime.ErrLean)
	for _, selector := range requested.all {
		require.Contains(t, selector, "metadata.name=")
	}
}

// TestLeanAfterItsEventOnARealServer: a reconcile of an event of the metadata finds the state of
// that event, or a newer one, and a read finds the program's own writes.
func TestLeanAfterItsEventOnARealServer(t *testing.T) {
	s := newRealServer(t)
	s.put("tls", "0")
	c := s.start(s.root, cache.Options{}, controllerruntime.Lean(&corev1.Secret{}))
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := c.GetInformer(within(t, 10*time.Second), metadata)
	require.NoError(t, err)
	events := make(chan *metav1.PartialObjectMetadata, 1000)
	_, err = informer.AddEventHandler(handled(func(obj any) { events <- obj.(*metav1.PartialObjectMetadata) }))
	require.NoError(t, err)
	key := client.ObjectKey{Namespace: "default", Name: "tls"}
	written := map[string]int{} // the number of each write, by its version
	for i := 1; i <= 100; i++ {
		obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls"}, StringData: map[string]string{"value": strings.Repeat("x", i)}}
		now, err := s.admin.CoreV1().Secrets("default").Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		written[now.ResourceVersion] = i
	}
	for seen := 0; seen < 100; {
		event := <-events
		if event.Name != "tls" || written[event.ResourceVersion] == 0 {
			continue
		}
		seen = written[event.ResourceVersion]
		var obj corev1.Secret
		require.NoError(t, c.Get(within(t, 10*time.Second), key, &obj))
		require.GreaterOrEqual(t, len(obj.Data["value"]), seen, "older than the event")
	}

	writer, err := controllerruntime.NewClient(s.root, client.Options{Cache: &client.CacheOptions{Reader: c}})
	require.NoError(t, err)
	for i := range 50 {
		var obj corev1.Secret
		require.NoError(t, writer.Get(within(t, 10*time.Second), key, &obj))
		obj.Data["value"] = []byte{byte(i)}
		require.NoError(t, writer.Update(t.Context(), &obj), "a read shows the last write, so there is no conflict")
	}
}

// handled is a handler of additions and updates.
type handled func(obj any)

func (h handled) OnAdd(obj any, _ bool) { h(obj) }
func (h handled) OnUpdate(_, obj any)   { h(obj) }
func (handled) OnDelete(any)            {}

// TestReadsNameTheCauseOnARealServer: a read without rights says so when its context ends, or at
// once with FailFast, and succeeds once the right is granted.
func TestReadsNameTheCauseOnARealServer(t *testing.T) {
	s := newRealServer(t)
	options := cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}
	patient := s.start(s.user, options)
	began := time.Now()
	err := patient.List(within(t, 3*time.Second), &corev1.PodList{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `not synced: forbidden: list pods in default: pods is forbidden: User "agent"`)
	require.GreaterOrEqual(t, time.Since(began), 3*time.Second)

	quick := s.start(s.user, options, controllerruntime.FailFast())
	began = time.Now()
	err = quick.List(within(t, time.Minute), &corev1.PodList{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Less(t, time.Since(began), 5*time.Second)

	s.permit("pods", rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	require.NoError(t, patient.List(within(t, 20*time.Second), &corev1.PodList{}))
	require.Eventually(t, func() bool { return quick.List(t.Context(), &corev1.PodList{}) == nil }, 20*time.Second, 50*time.Millisecond)
}
