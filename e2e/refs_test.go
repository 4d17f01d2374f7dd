package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
)

// TestRefsByResourceNames: rights to three names of one namespace are enough to follow these, by
// watch lists and by LIST and WATCH, and show nothing else. The verb watch alone is enough for
// watch lists.
func TestRefsByResourceNames(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	admin, err := kubernetes.NewForConfig(c.Server.Config(cluster.Admin))
	require.NoError(t, err)
	put := func(name, value string) *corev1.Secret {
		t.Helper()
		obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"value": value}}
		secrets := admin.CoreV1().Secrets(obj.Namespace)
		written, err := secrets.Update(t.Context(), obj, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			written, err = secrets.Create(t.Context(), obj, metav1.CreateOptions{})
		}
		require.NoError(t, err)
		return written
	}
	for _, name := range []string{"tls", "db", "of-others"} {
		put(name, "1")
	}
	permitByName(t, admin, cluster.AgentUser, "list", "watch")
	permitByName(t, admin, cluster.NobodyUser, "watch")

	for name, how := range map[string]struct {
		token   string
		options []listwatch.Option
		verbs   []string // that are used
	}{
		"list and watch":        {cluster.Agent, []listwatch.Option{listwatch.WithoutWatchList()}, []string{"list", "watch"}},
		"watch list":            {cluster.Agent, nil, []string{"watch"}},
		"watch list, in JSON":   {cluster.Agent, []listwatch.Option{listwatch.WithJSON()}, []string{"watch"}},
		"the verb watch, alone": {cluster.Nobody, nil, []string{"watch"}},
	} {
		t.Run(name, func(t *testing.T) {
			sent := &verbs{}
			config := c.Server.Config(how.token)
			config.Wrap(sent.wrap)
			client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
			require.NoError(t, err)
			secrets := runRefs(t, client, how.options)
			get := func(name string) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				obj, err := secrets.Get(ctx, "default", name)
				if obj == nil {
					return "", err
				}
				return string(obj.Data["value"]), err
			}
			require.EventuallyWithT(t, func(t *assert.CollectT) { // the server has read the roles
				secrets.SetOwner("pod", refs.In("default", "tls", "db", "missing", "of-others"))
				_, err := get("tls")
				require.NoError(t, err)
			}, 10*time.Second, 100*time.Millisecond)

			_, err = get("missing")
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			_, err = get("of-others")
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			var why *refs.Error
			require.ErrorAs(t, err, &why)
			require.Equal(t, reflector.Forbidden, why.Class)

			for i := range 3 { // own writes, read back
				value := fmt.Sprintf("%s %d", name, i)
				written := put("db", value)
				require.NoError(t, secrets.WaitFor(t.Context(), written))
				got, err := get("db")
				require.NoError(t, err)
				require.Equal(t, value, got)
			}
			put("missing", "1")
			require.Eventually(t, func() bool { value, _ := get("missing"); return value == "1" }, 5*time.Second, 5*time.Millisecond)
			require.NoError(t, admin.CoreV1().Secrets("default").Delete(t.Context(), "missing", metav1.DeleteOptions{}))
			require.Eventually(t, func() bool { _, err := get("missing"); return apierrors.IsNotFound(err) }, 5*time.Second, 5*time.Millisecond)
			require.Equal(t, how.verbs, sent.used())
		})
	}
}

// TestRefsAcrossARestart: a thousand names are read at once, and again after kill -9 of the server;
// with a watch for each, and with one of the namespace's metadata. Get tells meanwhile since when
// it does not know.
func TestRefsAcrossARestart(t *testing.T) {
	t.Parallel()
	const names = 1000
	c := cluster.Start(t)
	admin, err := kubernetes.NewForConfig(c.Server.Config(cluster.Admin))
	require.NoError(t, err)
	put := func(name, value string) *corev1.ConfigMap {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value}}
		written, err := admin.CoreV1().ConfigMaps("default").Update(t.Context(), obj, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			written, err = admin.CoreV1().ConfigMaps("default").Create(t.Context(), obj, metav1.CreateOptions{})
		}
		require.NoError(t, err)
		return written
	}
	var owned refs.Names
	for i := range names {
		owned = append(owned, refs.In("default", fmt.Sprintf("c%d", i))...)
		put(owned[i].Name, "1")
	}
	client, err := listwatch.NewRESTClient(c.Server.Config(cluster.Admin), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	both := map[string]*refs.Refs[*corev1.ConfigMap]{}
	for how, share := range map[string]int{"a watch for each name": 0, "one for the namespace": 100} {
		maps := refs.New(refs.FromClient[corev1.ConfigMap](client, "configmaps"), refs.WithNamespaceWatch(share))
		run(t, maps.Run)
		began := time.Now()
		maps.SetOwner("pod", owned)
		for _, name := range owned {
			_, err := maps.Get(t.Context(), name.Namespace, name.Name)
			require.NoError(t, err)
		}
		t.Logf("%s: %d names read after %s", how, names, time.Since(began).Round(time.Millisecond))
		both[how] = maps
	}
	require.Eventually(t, func() bool {
		status := both["one for the namespace"].Status()
		return status.Watches == 0 && status.Namespaces == 1 && status.Current == names
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, names, both["a watch for each name"].Status().Watches)

	c.Server.Kill()
	for how, maps := range both {
		require.Eventually(t, func() bool {
			obj, err := maps.Get(t.Context(), "default", "c7")
			var why *refs.Error
			return obj != nil && errors.As(err, &why) && !why.Since.IsZero()
		}, 10*time.Second, 10*time.Millisecond, "%s: the last known state, and since when it is old", how)
	}
	c.Server.Restart()
	for how, maps := range both {
		ready := time.Now()
		require.Eventually(t, func() bool { return maps.Status().Current == names }, 60*time.Second, 5*time.Millisecond, "%s: %s", how, maps.Status())
		t.Logf("%s: all current %s after the server was ready", how, time.Since(ready).Round(time.Millisecond))
		written := put("c9", how)
		require.NoError(t, maps.WaitFor(t.Context(), written))
		obj, err := maps.Get(t.Context(), "default", "c9")
		require.NoError(t, err)
		require.Equal(t, how, obj.Data["value"])
	}
}

// permitByName gives a user rights to three names of the default namespace.
func permitByName(t *testing.T, admin kubernetes.Interface, user string, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "of-" + user}, Rules: []rbacv1.PolicyRule{{
		Verbs: verbs, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"tls", "db", "missing"},
	}}}
	_, err := admin.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func runRefs(t *testing.T, client rest.Interface, options []listwatch.Option) *refs.Refs[*corev1.Secret] {
	secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets", options...))
	run(t, secrets.Run)
	return secrets
}

// run runs something until the test ends.
func run(t *testing.T, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

// verbs notes which verbs of successful requests were used.
type verbs struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (v *verbs) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			verb := "list"
			if strings.Contains(r.URL.RawQuery, "watch=true") {
				verb = "watch"
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.seen == nil {
				v.seen = map[string]bool{}
			}
			v.seen[verb] = true
		}
		return response, err
	})
}

func (v *verbs) used() (all []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for verb := range v.seen {
		all = append(all, verb)
	}
	slices.Sort(all)
	return all
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
