package relay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/relay"
)

const widgetsPath = "/apis/example.com/v1/namespaces/ns/widgets"

// aggregated is an API server of its own, which shows each user its own widgets: the relay all
// three, the client one, and others none.
func aggregated(t *testing.T) *url.URL {
	t.Helper()
	byUser := map[string]http.Handler{}
	for user, count := range map[string]int{relayToken: 3, clientToken: 1, "": 0} {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		t.Cleanup(s.Close)
		widgets := apiserver.Serve(s, widgetKind())
		for i := range count {
			_, err := widgets.Create(widget("ns", fmt.Sprint("theirs-", i)))
			require.NoError(t, err)
		}
		byUser[user] = s
	}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, known := byUser[r.Header.Get("X-Remote-User")]
		if !known {
			handler = byUser[""]
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	address, err := url.Parse(listener.URL)
	require.NoError(t, err)
	return address
}

// aggregates has another server answer for widgets, as an APIService without and with that server
// has it.
func (u *upstream) aggregates(by *url.URL) {
	forward := httputil.NewSingleHostReverseProxy(by)
	u.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/apis/example.com/") {
			return false
		}
		r.Header.Set("X-Remote-User", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		forward.ServeHTTP(w, r)
		return true
	})
}

// setAPIService says who serves widgets: the upstream itself, or another server.
func (u *upstream) setAPIService(t testing.TB, local bool) {
	t.Helper()
	service := `{"namespace":"platform","name":"api"}`
	if local {
		service = "null"
	}
	const all = "/apis/apiregistration.k8s.io/v1/apiservices"
	if !local {
		u.send(t, http.MethodDelete, all+"?fieldSelector=metadata.name%3Dv1.example.com", "")
	}
	u.send(t, http.MethodPost, all, fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.example.com"},`+
		`"spec":{"group":"example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":15,"service":%s}}`, service))
}

// widgetsOf are the widgets that a user reads.
func widgetsOf(t *testing.T, url, token string) []string {
	t.Helper()
	answer := get(t, url+widgetsPath, "Authorization", "Bearer "+token)
	if answer.code != http.StatusOK {
		return []string{fmt.Sprint(answer.code)}
	}
	return names(t, answer.body)
}

// TestAnAggregatedAPIIsNotCopied: it shows each user other objects, and so does the relay, which
// says so. A resource that is named is copied all the same.
func TestAnAggregatedAPIIsNotCopied(t *testing.T) {
	u := newUpstream(t)
	u.setAPIService(t, false)
	u.aggregates(aggregated(t))
	g := newRigBefore(t, u)
	for token, count := range map[string]int{clientToken: 1, "nobody": 0} {
		require.Len(t, widgetsOf(t, "http://"+u.address, token), count)
		require.Len(t, widgetsOf(t, g.url, token), count, token)
		watched := get(t, g.url+widgetsPath+"?watch=1&timeoutSeconds=1", "Authorization", "Bearer "+token)
		require.Equal(t, count, strings.Count(watched.body, "ADDED"), token)
	}
	require.Equal(t, http.StatusNotFound, get(t, g.url+widgetsPath+"/theirs-2").code)
	require.Empty(t, g.copies())
	require.Contains(t, get(t, g.url+"/readyz?verbose").body, "[+]widgets.example.com is not copied: an aggregated API serves")
	require.Contains(t, sampleNames(g.Relay), "tributary_relay_refused")

	named := newRigBefore(t, u, relay.Aggregated(widgetResource.GroupResource()))
	require.Len(t, widgetsOf(t, named.url, "nobody"), 3)
	require.Equal(t, []string{"widgets.example.com"}, named.copies())
}

func sampleNames(r *relay.Relay) (all []string) {
	for s := range r.Samples("relay") {
		all = append(all, s.Metric.Name)
	}
	return all
}

// TestAnAPIServiceBecomesAggregated while its resource is copied: no object of the other server
// comes into the copy, which ends.
func TestAnAPIServiceBecomesAggregated(t *testing.T) {
	u := newUpstream(t)
	u.setAPIService(t, true)
	_, err := u.widgets.Create(widget("ns", "local"))
	require.NoError(t, err)
	g := newRigBefore(t, u)
	require.Equal(t, []string{"ns/local"}, widgetsOf(t, g.url, "nobody"))
	require.Equal(t, []string{"widgets.example.com"}, g.copies())

	u.setAPIService(t, false)
	u.aggregates(aggregated(t))
	u.down()
	u.up(t)
	require.Eventually(t, func() bool {
		assert.NotContains(t, fmt.Sprint(widgetsOf(t, g.url, "nobody")), "theirs")
		return len(g.copies()) == 0
	}, time.Minute, 10*time.Millisecond)
	require.Len(t, widgetsOf(t, g.url, clientToken), 1)
	require.Empty(t, widgetsOf(t, g.url, "nobody"))
}

// TestWithoutTheRightToAPIServices, built-in kinds are copied, and other kinds are passed on unless
// they are named.
func TestWithoutTheRightToAPIServices(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	u.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/apiservices") {
			return false
		}
		writeStatus(w, http.StatusForbidden, "Forbidden")
		return true
	})
	g := newRigBefore(t, u)
	require.Equal(t, http.StatusOK, get(t, g.url+"/api/v1/pods").code)
	require.Equal(t, http.StatusOK, get(t, g.url+widgetsPath).code)
	require.Equal(t, []string{"pods"}, g.copies())
	require.Contains(t, get(t, g.url+"/readyz?verbose").body, "grant it get of apiservices")
	g = newRigBefore(t, u, relay.Aggregated(schema.GroupResource{Group: "example.com", Resource: "widgets"}))
	require.Equal(t, http.StatusOK, get(t, g.url+widgetsPath).code)
	require.Equal(t, []string{"widgets.example.com"}, g.copies())
}

// writeStatus answers with an error of the API server's form.
func writeStatus(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)
}
