package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// TestRelayRights: random requests of random users get from a relay the code that the API server
// gives them, the same objects, and the same words of refusal. A path that is not plain is a 400.
func TestRelayRights(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, "--authorization-mode=Node") // beside RBAC
	w := newWorld(t, c)
	c.AllowRelay()
	users := w.people(t)
	relay := w.relayOfServer(nil)
	seed := relaySeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	server := c.Server.Address()
	sides := map[string][2]*http.Client{}
	for _, u := range users {
		direct, err := rest.HTTPClientFor(c.Server.Config(u.token))
		require.NoError(t, err)
		through, err := rest.HTTPClientFor(relay.config(u.token))
		require.NoError(t, err)
		sides[u.name] = [2]*http.Client{direct, through}
	}
	requests := 1500
	if full {
		requests = 20_000
	}
	codes, differ := map[int]int{}, []string{}
	for n := range requests {
		u, asked := users[random.IntN(len(users))], randomRequest(random)
		want := asked.send(t, sides[u.name][0], server)
		got := asked.send(t, sides[u.name][1], relay.address)
		codes[want.Code]++
		if strings.Contains(asked.path, "//") { // servers read it in different ways
			want = reply{Code: http.StatusBadRequest, Reason: string(metav1.StatusReasonBadRequest)}
		}
		if !assert.ObjectsAreEqual(want, got) {
			differ = append(differ, fmt.Sprintf("request %d of %s: %s: the API server %+v, the relay %+v", n, u.name, asked, want, got))
		}
	}
	require.Empty(t, differ, "seed %d", seed)
	t.Logf("%d requests, answers of the API server by their codes: %v", requests, codes)
	for _, code := range []int{200, 401, 403, 404} {
		require.Positive(t, codes[code], "no answer %d to compare", code)
	}
}

// person is a user with some rights.
type person struct{ name, token string }

// people are users with rights of all kinds, and what they may have them to.
func (w *world) people(t *testing.T) (all []person) {
	t.Helper()
	w.defineWidgets()
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		_, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		widget := newWidget("w1", "node-1")
		widget.SetNamespace(name)
		_, err = w.dynamics.Resource(widgetResource).Namespace(name).Create(ctx, widget, metav1.CreateOptions{})
		require.NoError(t, err)
		for _, object := range []string{"s1", "s2"} {
			meta := metav1.ObjectMeta{Name: object, Labels: map[string]string{"app": object}}
			_, err = w.client.CoreV1().Secrets(name).Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = w.client.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		for i, node := range []string{"node-1", "node-2"} {
			pod := newPod(fmt.Sprintf("p%d", i+1), node)
			pod.Namespace = name
			pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("s%d", i+1)},
			}}}
			_, err = w.client.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	for _, name := range []string{"node-1", "node-2"} {
		_, err := w.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	core := func(verbs string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{"", widgetVersion.Group}, Resources: resources}
	}
	named := func(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
		rule.ResourceNames = names
		return rule
	}
	const reads = "get list watch"
	for _, u := range []struct {
		name, namespace string // empty: all
		rules           []rbacv1.PolicyRule
	}{
		{"of one namespace", "a", []rbacv1.PolicyRule{core(reads, "pods", "configmaps", "secrets", "widgets", "pods/log")}},
		{"lists alone", "", []rbacv1.PolicyRule{core("list", "pods", "configmaps", "widgets", "namespaces")}},
		{"watches alone", "", []rbacv1.PolicyRule{core("watch", "pods", "configmaps", "widgets")}},
		{"gets alone", "", []rbacv1.PolicyRule{core("get", "pods", "configmaps", "secrets", "nodes", "namespaces")}},
		{"by names", "a", []rbacv1.PolicyRule{named(core(reads, "secrets", "configmaps", "pods"), "s1", "p1")}},
		{"by names, everywhere", "", []rbacv1.PolicyRule{named(core(reads, "secrets", "nodes", "namespaces"), "s1", "node-1", "a")}},
		{"writes", "a", []rbacv1.PolicyRule{core("create update patch delete deletecollection", "configmaps"), core("get", "pods")}},
		{"all", "", []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, {Verbs: []string{"get"}, NonResourceURLs: []string{"*"}}}},
		{"nothing", "", nil},
	} {
		name := strings.NewReplacer(" ", "-", ",", "").Replace(u.name)
		account := w.account(t, name)
		w.bind(t, name, u.namespace, u.rules)
		all = append(all, person{u.name, w.cluster.AccountToken(account, time.Now().Add(time.Hour))})
	}
	all = append(all, person{"a node", cluster.Node}, person{"a stranger", "a wrong token"})
	for _, u := range all { // until the authorizers have seen all
		if u.name == "a node" {
			client, err := rest.HTTPClientFor(w.cluster.Server.Config(u.token))
			require.NoError(t, err)
			mine := randomOf{method: "GET", path: "/api/v1/namespaces/b/secrets/s1"}
			require.Eventually(t, func() bool { return mine.send(t, client, w.cluster.Server.Address()).Code == http.StatusOK }, 20*time.Second, 20*time.Millisecond)
		}
	}
	return all
}

// bind gives a service account of the default namespace a role.
func (w *world) bind(t testing.TB, name, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}}
	var err error
	if namespace == "" {
		_, err = w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects,
		}, metav1.CreateOptions{})
	} else {
		_, err = w.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = w.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects,
		}, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

// randomOf is a request that a person may make.
type randomOf struct {
	method, path string
	query        url.Values
	accept, body string
}

func (r randomOf) String() string {
	return fmt.Sprintf("%s %s?%s, accepting %q", r.method, r.path, r.query.Encode(), r.accept)
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

func randomRequest(random *rand.Rand) (r randomOf) {
	r.method, r.query, r.accept = "GET", url.Values{}, "application/json"
	if random.IntN(20) == 0 {
		r.path = pick(random, "/api", "/apis", "/version", "/metrics", "/openapi/v3", "/api/v1", "/apis/apps/v1", "/nothing", "/api/v2/pods",
			"/api/v1/watch/pods", "/api/v1/namespaces/a/pods/", "/api/v1//pods", "/apis/nothing.dev/v1/things", "/logs/", "/debug/pprof/", "/")
		return r
	}
	resource := pick(random, "pods", "pods", "pods", "secrets", "secrets", "configmaps", "widgets", "nodes", "namespaces", "deployments", "things")
	r.path = "/api/v1"
	switch resource {
	case "widgets":
		r.path = "/apis/" + widgetVersion.String()
	case "deployments":
		r.path = "/apis/apps/v1"
	}
	namespaced := resource != "nodes" && resource != "namespaces"
	if (namespaced && random.IntN(4) > 0) || random.IntN(20) == 0 {
		r.path += "/namespaces/" + pick(random, "a", "a", "b", "missing")
	}
	r.path += "/" + resource
	object := random.IntN(5) < 2
	if object {
		r.path += "/" + map[string]string{
			"pods": pick(random, "p1", "p2"), "secrets": pick(random, "s1", "s2"), "configmaps": pick(random, "s1", "s2"), "widgets": "w1",
			"nodes": pick(random, "node-1", "node-2"), "namespaces": pick(random, "a", "b"), "deployments": "d", "things": "t",
		}[resource]
		if random.IntN(10) == 0 {
			r.path += pick(random, "x", "/status", "/log", "/scale", "/nothing")
		}
	}
	if random.IntN(12) == 0 {
		r.method = pick(random, "POST", "PUT", "PATCH", "DELETE", "HEAD")
		r.query.Set("dryRun", "All")
		if r.method != "DELETE" { // there, a body has the options
			r.body = `{"metadata":{"name":"s1"}}`
		}
		return r
	}
	set := func(one int, name string, values ...string) {
		if random.IntN(one) == 0 {
			r.query.Set(name, pick(random, values...))
		}
	}
	if !object {
		set(3, "watch", "true", "1", "false", "0", "maybe")
		set(3, "fieldSelector", "metadata.name=s1", "metadata.name=p1", "spec.nodeName=node-1", "spec.nodeName=node-2", "metadata.name=node-1",
			"metadata.namespace=a", "metadata.name!=s1", "spec.unknown=1", "=", "metadata.name=s1,metadata.namespace=a")
		set(4, "labelSelector", "app=s1", "app in (s1,s2)", "!app", "app in", "app=web")
		set(6, "limit", "1", "500", "-1", "many")
		set(12, "resourceVersionMatch", "Exact", "NotOlderThan", "Newest")
		set(20, "sendInitialEvents", "true", "false")
		set(20, "allowWatchBookmarks", "true")
		set(20, "continue", "nonsense")
		if r.query.Has("watch") {
			r.query.Set("timeoutSeconds", "1")
		}
	}
	set(6, "resourceVersion", "0", "1", "nonsense", "999999999")
	if r.query.Get("resourceVersion") == "999999999" {
		r.query.Set("timeout", "1s")
	}
	set(30, "pretty", "true")
	set(30, "unknown", "1")
	metadata := "PartialObjectMetadataList"
	if object {
		metadata = "PartialObjectMetadata"
	}
	r.accept = pick(random, "application/json", "application/json", "application/json", "*/*", "",
		"application/json;as="+metadata+";v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
		"application/json;as=Nothing;v=v1;g=meta.k8s.io", "text/nonsense")
	return r
}

// reply is what is compared of an answer.
type reply struct {
	Code    int
	Reason  string
	Message string
	Names   []string
}

// send sends the request to a server. Of a watch, only the code is read.
func (r randomOf) send(t testing.TB, client *http.Client, address string) (got reply) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	target := "https://" + address + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, strings.NewReader(r.body))
	require.NoError(t, err)
	if r.accept != "" {
		request.Header.Set("Accept", r.accept)
	}
	request.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[r.method])
	if r.method != "PATCH" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := client.Do(request)
	if err != nil {
		return reply{Message: "no answer: " + err.Error()}
	}
	defer answer.Body.Close()
	got.Code = answer.StatusCode
	if got.Code == http.StatusOK && (r.query.Has("watch") || strings.Contains(r.path, "/watch/")) {
		return got
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{Code: got.Code, Message: "half an answer: " + err.Error()}
	}
	var document struct {
		Reason, Message string
		Items           []struct {
			Metadata struct{ Name, Namespace string }
		}
		Rows []struct{ Cells []any }
	}
	if json.Unmarshal(body, &document) != nil {
		return got
	}
	got.Reason = document.Reason
	if got.Code == http.StatusForbidden || got.Code == http.StatusUnauthorized || got.Code == http.StatusNotFound {
		got.Message = document.Message
	}
	for _, item := range document.Items {
		got.Names = append(got.Names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	for _, row := range document.Rows {
		got.Names = append(got.Names, fmt.Sprint(row.Cells[0]))
	}
	slices.Sort(got.Names)
	return got
}
