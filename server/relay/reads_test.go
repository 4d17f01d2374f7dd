package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/relay"
	"github.com/tributary-go/tributary/server/watchcache"
)

// inhabited creates pods, widgets and config maps, and returns versions at which there was
// something.
func (u *upstream) inhabited(t testing.TB) (versions []string) {
	t.Helper()
	for i := range 12 {
		created := u.createPods(t, pod([]string{"ns", "other"}[i%2], fmt.Sprint("pod-", i), fmt.Sprint("node-", i%3), "app", fmt.Sprint("app-", i%4)))
		versions = append(versions, created.ResourceVersion)
		if i%3 == 0 {
			_, err := u.widgets.Create(widget("ns", fmt.Sprint("widget-", i)))
			require.NoError(t, err)
			u.create(t, "configmaps", "ns", fmt.Sprintf(`{"metadata":{"name":"map-%d","labels":{"app":"app-%d"}},"data":{"a":"b"}}`, i, i%4))
		}
	}
	return versions
}

var accepts = []string{
	"", "application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
	"application/vnd.kubernetes.protobuf,application/json", "*/*", "text/html",
	"application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
	"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
}

var paths = []string{
	"/api/v1/pods", "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/pods/pod-0", "/api/v1/namespaces/ns/pods/none",
	"/api/v1/pods/pod-0", "/api/v1/namespaces", "/api/v1/namespaces/ns", "/api/v1/namespaces/ns/configmaps",
	"/apis/example.com/v1/widgets", "/apis/example.com/v1/namespaces/ns/widgets/widget-0", "/apis/example.com/v2/widgets",
	"/apis/example.com/v1/gadgets", "/apis/apps/v1/deployments", "/apis/autoscaling/v1/horizontalpodautoscalers",
	"/api/v1/namespaces/ns/pods/pod-0/status", "/api/v1/namespaces/ns/namespaces", "/api/v1/nodes/", "/api/v1/watch/pods",
	"/apis/autoscaling/v2/horizontalpodautoscalers", "/apis/apiregistration.k8s.io/v1/apiservices", "/nothing",
}

// query is a random query: now and then it makes no sense.
func query(random *rand.Rand, versions []string) string {
	q := url.Values{}
	maybe := func(name string, values ...string) {
		if random.IntN(4) == 0 {
			q.Set(name, values[random.IntN(len(values))])
		}
	}
	version := versions[random.IntN(len(versions))]
	maybe("labelSelector", "app=app-1", "app in (app-1,app-2)", "!app", "app=app-1,app!=app-1", "a b c", "app==app-0")
	maybe("fieldSelector", "spec.nodeName=node-1", "metadata.name=pod-0", "metadata.namespace!=ns", "status.phase=Pending", "spec.unknown=a", "a")
	maybe("resourceVersion", "", "0", version, "99999999", "-1", "abc")
	maybe("resourceVersionMatch", "Exact", "NotOlderThan", "Other")
	maybe("limit", "1", "3", "0", "-1", "many")
	maybe("includeObject", "None", "Metadata", "Object", "All")
	maybe("pretty", "true")
	maybe("timeoutSeconds", "1", "x")
	maybe("shardSelector", "a")
	return q.Encode()
}

// TestReadsAreThoseOfTheUpstream: random lists and gets, some of them wrong, have the same answer
// from the relay as from the upstream, with all further pages.
func TestReadsAreThoseOfTheUpstream(t *testing.T) {
	const patience = time.Second // with versions of the future
	g := newRigBefore(t, newUpstream(t, watchcache.WithFreshWait(patience)), relay.WithCache(watchcache.WithFreshWait(patience)))
	versions := g.upstream.inhabited(t)
	seed := rand.Uint64()
	t.Run("", func(t *testing.T) {
		for worker := range uint64(8) { // some answers wait
			t.Run("", func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, worker))
				for range 60 {
					g.compareOne(t, random, versions, fmt.Sprintf("seed %d, worker %d", seed, worker))
				}
			})
		}
	})
	require.Subset(t, g.copies(), []string{"pods", "namespaces", "configmaps", "widgets.example.com", "deployments.apps"})
	require.NotZero(t, g.admitted.Load())
}

// compareOne sends one request, and those for all further pages, to both servers.
func (g *rig) compareOne(t *testing.T, random *rand.Rand, versions []string, seed string) {
	t.Helper()
	path := paths[random.IntN(len(paths))]
	q := query(random, versions)
	accept := accepts[random.IntN(len(accepts))]
	if strings.Contains(path, "autoscaling/v1/") {
		accept = "application/json" // documents here, whose lists are written a little otherwise
	}
	for page := 0; ; page++ {
		what := fmt.Sprintf("%s: %s?%s (Accept: %s), page %d", seed, path, q, accept, page)
		direct, relayed := get(t, "http://"+g.upstream.address+path+"?"+q, "Accept", accept), get(t, g.url+path+"?"+q, "Accept", accept)
		require.Equal(t, direct.code, relayed.code, "%s: %s\n%s", what, direct.body, relayed.body)
		require.Equal(t, direct.header.Get("Content-Type"), relayed.header.Get("Content-Type"), what)
		require.Equal(t, timeless(direct.body), timeless(relayed.body), what)
		require.Empty(t, relayed.header["Warning"], what)
		if q = nextPage(q, direct.body); q == "" {
			return
		}
	}
}

var ages = regexp.MustCompile(`"\d+(ms|s|m)"`)

// timeless is an answer without the ages that its rows have, and without the empty token that lists
// of documents have.
func timeless(body string) string {
	return strings.Replace(ages.ReplaceAllString(body, `"age"`), `,"continue":""`, "", 1)
}

// nextPage is the query of the next page of a list in JSON; empty if there is none.
func nextPage(q, body string) string {
	var list metav1.PartialObjectMetadataList
	if json.Unmarshal([]byte(body), &list) != nil || list.Continue == "" || strings.Contains(q, "limit=0") {
		return ""
	}
	values, _ := url.ParseQuery(q)
	values.Del("resourceVersion")
	values.Del("resourceVersionMatch")
	values.Set("continue", list.Continue)
	return values.Encode()
}

// TestPagesGoOnAtTheOtherServer: the continue tokens of either server are good at the other one, in
// one namespace too.
func TestPagesGoOnAtTheOtherServer(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	for _, namespace := range []string{"", "ns"} {
		servers := []string{g.url, "http://" + g.upstream.address}
		path := "/api/v1/pods"
		if namespace != "" {
			path = "/api/v1/namespaces/" + namespace + "/pods"
		}
		for first := range servers {
			whole, seen, token := names(t, get(t, servers[0]+path).body), []string{}, ""
			for page := first; page == first || token != ""; page++ {
				answer := get(t, servers[page%2]+path+"?limit=2&continue="+url.QueryEscape(token))
				require.Equal(t, 200, answer.code, answer.body)
				seen = append(seen, names(t, answer.body)...)
				var list metav1.PartialObjectMetadataList
				require.NoError(t, json.Unmarshal([]byte(answer.body), &list))
				token = list.Continue
			}
			require.Equal(t, whole, seen)
		}
	}
}

func names(t testing.TB, body string) (all []string) {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	for _, item := range list.Items {
		all = append(all, item.Namespace+"/"+item.Name)
	}
	return all
}

// TestWatchesGoOnAtTheOtherServer: a watch from a version of the upstream goes on at the relay, and
// the reverse.
func TestWatchesGoOnAtTheOtherServer(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	here, there := clientset(t, g.config()).CoreV1().Pods("ns"), clientset(t, g.upstream.config(clientToken)).CoreV1().Pods("ns")
	_, err := here.List(t.Context(), metav1.ListOptions{}) // the window begins
	require.NoError(t, err)
	for _, way := range []string{"from the upstream", "to the upstream"} {
		from, to := there, here
		if way == "to the upstream" {
			from, to = here, there
		}
		list, err := from.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		created := g.upstream.createPods(t, pod("ns", "late-"+way[:2], "node-1"))
		watcher, err := to.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		require.NoError(t, err)
		event := <-watcher.ResultChan()
		watcher.Stop()
		require.Equal(t, created.UID, event.Object.(*corev1.Pod).UID, way)
		require.Equal(t, created.ResourceVersion, event.Object.(*corev1.Pod).ResourceVersion, way)
	}
}

// TestAWatchFromBeforeTheCopy: the upstream answers a watch of a version that the copy has never
// had, or has no longer.
func TestAWatchFromBeforeTheCopy(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	list, err := clientset(t, g.upstream.config(clientToken)).CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	created := g.upstream.createPods(t, pod("ns", "before-the-copy", "node-1"))
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := g.config()
		config.ContentType = contentType
		here := clientset(t, config).CoreV1().Pods("ns")
		_, err = here.List(t.Context(), metav1.ListOptions{}) // the window begins
		require.NoError(t, err)
		watcher, err := here.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		require.NoError(t, err)
		event := <-watcher.ResultChan()
		watcher.Stop()
		require.Equal(t, watch.Added, event.Type, "%v", event.Object)
		require.Equal(t, created.ResourceVersion, event.Object.(*corev1.Pod).ResourceVersion)
	}
	g.upstream.pods.Compact()
	watcher, err := clientset(t, g.config()).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer watcher.Stop()
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject((<-watcher.ResultChan()).Object)), "which the upstream has forgotten, too")
}

// TestClients: typed, dynamic, metadata and discovery clients find here what they find upstream.
func TestClients(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		here, there := g.config(), g.upstream.config(clientToken)
		here.ContentType, there.ContentType = contentType, contentType
		options := metav1.ListOptions{LabelSelector: "app=app-0"}
		relayed, err := clientset(t, here).CoreV1().Pods("").List(t.Context(), options)
		require.NoError(t, err)
		direct, err := clientset(t, there).CoreV1().Pods("").List(t.Context(), options)
		require.NoError(t, err)
		require.Equal(t, direct, relayed)
		require.Len(t, relayed.Items, 3)
	}
	for _, resource := range []schema.GroupVersionResource{widgetResource, {Version: "v1", Resource: "pods"}} {
		var lists []any
		for _, config := range []string{g.url, "http://" + g.upstream.address} {
			documents, err := dynamic.NewForConfig(g.configOf(config))
			require.NoError(t, err)
			list, err := documents.Resource(resource).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			partial, err := metadata.NewForConfig(g.configOf(config))
			require.NoError(t, err)
			names, err := partial.Resource(resource).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			lists = append(lists, []any{list, names})
		}
		require.Equal(t, lists[1], lists[0])
	}
	var found []any
	for _, config := range []string{g.url, "http://" + g.upstream.address} {
		client, err := discovery.NewDiscoveryClientForConfig(g.configOf(config))
		require.NoError(t, err)
		groups, resources, err := client.ServerGroupsAndResources()
		require.NoError(t, err)
		slices.SortFunc(resources, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
		document, err := client.OpenAPISchema()
		require.NoError(t, err)
		found = append(found, []any{groups, resources, len(document.GetDefinitions().GetAdditionalProperties())})
	}
	require.Equal(t, found[1], found[0])
}

// TestReadsAreProvenFresh: a list without a version shows each write that the upstream has
// acknowledged, from whatever client it came.
func TestReadsAreProvenFresh(t *testing.T) {
	g := newRig(t)
	client := clientset(t, g.config()).CoreV1()
	_, err := client.Pods("").List(t.Context(), metav1.ListOptions{}) // starts the copy
	require.NoError(t, err)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 20 {
				made, err := client.Pods("ns").Create(t.Context(), pod("ns", fmt.Sprintf("pod-%d-%d", w, i), "node"), metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				list, err := client.Pods("ns").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + made.Name})
				if err != nil || len(list.Items) != 1 {
					t.Errorf("%s is not in the list: %v", made.Name, err)
				}
				got, err := client.Pods("ns").Get(t.Context(), made.Name, metav1.GetOptions{})
				if err != nil || number(got.ResourceVersion) < number(made.ResourceVersion) {
					t.Errorf("%s@%s is %v: %v", made.Name, made.ResourceVersion, got, err)
				}
			}
		})
	}
	writers.Wait()
	require.Equal(t, 1, g.upstream.ofRelay("pods", true))
}

func (g *rig) configOf(url string) *rest.Config {
	return &rest.Config{Host: url, BearerToken: clientToken, QPS: -1}
}

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// TestNewerUpstreamsAreReadAsDocuments: an upstream of a later release than the Go types may have
// fields that these do not know. Its objects come with all their fields.
func TestNewerUpstreamsAreReadAsDocuments(t *testing.T) {
	for types, kept := range map[int]bool{35: true, 36: false} {
		g := newRig(t, relay.WithTypesOf(types))
		g.upstream.createPods(t, pod("ns", "a", "node"))
		g.upstream.answers(g.upstream.withNewField)
		body := get(t, g.url+"/api/v1/namespaces/ns/pods").body
		require.Equal(t, []string{"ns/a"}, names(t, body))
		require.Equal(t, kept, strings.Contains(body, `"fieldOfTomorrow":"x"`), "types of 1.%d: %s", types, body)
		require.Equal(t, []string{"pods"}, g.copies())
		table := get(t, g.url+"/api/v1/pods", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body
		require.Contains(t, table, `"Restarts"`)
	}
}

// TestAnUpgradedUpstreamIsReadAsDocuments: a copy in Go types ends when its watch begins anew at a
// server of a later release.
func TestAnUpgradedUpstreamIsReadAsDocuments(t *testing.T) {
	g := newRig(t, relay.WithTypesOf(36))
	g.upstream.createPods(t, pod("ns", "a", "node"))
	g.upstream.answers(g.upstream.withNewField)
	list := g.url + "/api/v1/namespaces/ns/pods"
	require.NotContains(t, get(t, list).body, "fieldOfTomorrow")
	g.upstream.down()
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/version" {
			return g.upstream.withNewField(w, r)
		}
		_, _ = io.WriteString(w, `{"major":"1","minor":"37"}`)
		return true
	})
	g.upstream.up(t)
	require.Eventually(t, func() bool {
		answer := get(t, list)
		return answer.code == http.StatusOK && strings.Contains(answer.body, "fieldOfTomorrow")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, []string{"pods"}, g.copies())
}

// withNewField is an upstream whose pods have a field that no Go type has.
func (u *upstream) withNewField(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/pods") || strings.Contains(r.Header.Get("Accept"), "as=") {
		return false
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	r.Header.Del("Accept-Encoding")
	u.Server.ServeHTTP(insertField{w}, r)
	return true
}

type insertField struct{ http.ResponseWriter }

func (w insertField) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.ReplaceAll(p, []byte(`"spec":{`), []byte(`"spec":{"fieldOfTomorrow":"x",`)))
	return len(p), err
}

func (w insertField) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestAWebSocketIsPassedOnWithItsToken: the access control takes the token out of the subprotocols,
// and the upstream needs it for a watch whose version the copy has forgotten.
func TestAWebSocketIsPassedOnWithItsToken(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	g := &rig{upstream: u}
	g.listen(t, u.config(relayToken), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.Header.Del("Sec-Websocket-Protocol")
			next.ServeHTTP(w, r)
		})
	}, nil)
	require.Equal(t, http.StatusOK, get(t, g.url+"/api/v1/pods").code)
	u.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Upgrade") != "" {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, r.Header.Get("Sec-Websocket-Protocol"))
		}
		return r.Header.Get("Upgrade") != ""
	})
	const protocols = "base64url.bearer.authorization.k8s.io.bWluZQ, v4.channel.k8s.io"
	answer := get(t, g.url+"/api/v1/pods?watch=1&resourceVersion=1", "Connection", "Upgrade", "Upgrade", "websocket",
		"Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version", "13", "Origin", g.url, "Sec-Websocket-Protocol", protocols)
	require.Equal(t, http.StatusTeapot, answer.code)
	require.Equal(t, protocols, answer.body)
}
