package reviews_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

// TestUpstreamOverHTTP: reviews go below the path of the config's host, under the server's own
// credential. A connection that has been cut is no failure, and a redirect gets no token.
func TestUpstreamOverHTTP(t *testing.T) {
	c, elsewhere := newCluster(), 0
	var headers []string
	mux := http.NewServeMux()
	mux.Handle("/prefix/", http.StripPrefix("/prefix", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header.Get("Authorization"))
		c.ServeHTTP(w, r)
	})))
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	server := httptest.NewServer(mux)
	defer server.Close()
	r, err := reviews.New(&rest.Config{Host: server.URL + "/prefix", BearerToken: "own"}, reviews.WithRefusal(0))
	require.NoError(t, err)
	require.Equal(t, 200, get(r, pods, "alice's").Code)
	server.CloseClientConnections()
	require.Equal(t, 200, get(r, pods+"/b", "bob's").Code)
	require.EqualValues(t, 0, r.Status().Tokens.Failed+r.Status().Rights.Failed)
	for _, header := range headers {
		require.Equal(t, "Bearer own", header)
	}
	c.change(func() {
		c.trouble = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	})
	require.Equal(t, 500, get(r, pods, "eve's").Code)
	require.Zero(t, elsewhere)
	server.Close()
	require.Equal(t, 503, get(r, pods, "eve's").Code)
	require.Equal(t, reflector.Unreachable, r.Status().Tokens.Class)
}

// TestTokensAreKeptNowhere once their requests have ended: nothing that the reviews reach has one,
// and no text either.
func TestTokensAreKeptNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const good, bad = "tok3n-of-alice", "tok3n-of-eve"
		c := newCluster()
		c.users[good] = authenticationv1.UserInfo{Username: "alice", Groups: []string{"dev"}}
		r := newReviews(t, c)
		var texts []string
		note := func(answer *httptest.ResponseRecorder) {
			texts = append(texts, fmt.Sprint(answer.Header(), answer.Body), fmt.Sprintf("%+v %v", r.Status(), r.Status().Err()))
			for name, err := range r.Causes("relay") {
				texts = append(texts, name+err.Error())
			}
			for sample := range r.Samples("relay") {
				texts = append(texts, fmt.Sprint(sample.Labels))
			}
		}
		for _, token := range []string{good, bad} {
			c.allows = func(authorizationv1.SubjectAccessReviewSpec) (bool, string) { return false, "" }
			note(get(r, pods, token))
			c.allows = newCluster().allows
			note(get(r, pods+"?watch=1", token)) // the handler behind returns at once
			for _, trouble := range []func(*cluster){
				troubles["no connection"], troubles["stopped"], func(c *cluster) { c.trouble = refuse(403) }, func(c *cluster) {
					c.trouble = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, token, 500) }
				}, func(c *cluster) {
					c.trouble = func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, token) }
				},
			} {
				time.Sleep(time.Minute)
				c.change(func() { trouble(c) })
				note(get(r, pods, token))
				c.heal()
			}
			note(get(r, pods, token))
		}
		for _, text := range texts {
			require.NotContains(t, text, "tok3n")
		}
		time.Sleep(time.Minute)
		seen := walk{prefix: "tok3n", been: map[uintptr]bool{}}
		seen.value(t, reflect.ValueOf(r).Elem(), "Reviews")
		require.Greater(t, seen.texts, 3, "users and groups at least")
	})
}

// walk looks for texts in all that a value reaches, but for the way to the upstream.
type walk struct {
	prefix string
	been   map[uintptr]bool
	texts  int
}

func (w *walk) value(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		w.texts++
		require.NotContains(t, v.String(), w.prefix, path)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Kind() == reflect.Pointer && w.been[v.Pointer()] {
			return
		}
		if v.Kind() == reflect.Pointer {
			w.been[v.Pointer()] = true
		}
		w.value(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "upstream" {
				w.value(t, v.Field(i), path+"."+name)
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			w.value(t, entries.Key(), path+"[key]")
			w.value(t, entries.Value(), path+"[]")
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			var text []byte
			for i := range v.Len() {
				text = append(text, byte(v.Index(i).Uint()))
			}
			require.NotContains(t, string(text), w.prefix, path)
			return
		}
		for i := range v.Len() {
			w.value(t, v.Index(i), path+"[]")
		}
	}
}

// TestSamples: the numbers of both kinds of review, and since when one fails.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		path := filepath.Join(t.TempDir(), "ca.crt")
		require.NoError(t, os.WriteFile(path, newSigner(t).pem(), 0o600))
		r := newReviews(t, c, reviews.WithClientCA(path))
		require.Equal(t, 200, get(r, pods, "alice's").Code)
		require.Equal(t, 401, get(r, pods, "eve's").Code)
		require.Equal(t, 200, get(r, pods+"/b", "alice's").Code)
		time.Sleep(time.Second)
		c.change(func() { c.trouble = refuse(403) })
		require.Equal(t, 500, get(r, pods+"/c", "alice's").Code)
		var reporter metrics.Reporter = r
		shown := map[string]float64{}
		for s := range reporter.Samples("relay") {
			if !strings.HasSuffix(s.Metric.Name, "_bytes") {
				shown[strings.Join(append([]string{strings.TrimPrefix(s.Metric.Name, "tributary_reviews_")}, s.Labels[1:]...), " ")] = s.Value
			}
		}
		require.Equal(t, map[string]float64{
			"watches": 0, "client_ca_failing": 0,
			"asked_total tokenreviews": 2, "failed_total tokenreviews": 0, "held_total tokenreviews": 0,
			"asked_total subjectaccessreviews": 3, "failed_total subjectaccessreviews": 1, "held_total subjectaccessreviews": 0,
			"failing_since_timestamp_seconds subjectaccessreviews": float64(time.Now().Unix()),
			"failing subjectaccessreviews forbidden":               1,
		}, shown)
	})
}

// FuzzRequests: no request panics, and none passes but by a question about it.
func FuzzRequests(f *testing.F) {
	f.Add("/api/v1/namespaces/n/pods", "fieldSelector=metadata.name%3Dx&watch=1", "Bearer alice's")
	f.Add("/apis/apps/v1/namespaces//deployments", "labelSelector=a+in+(b", "Bearer")
	f.Fuzz(func(t *testing.T, path, query, authorization string) {
		c := newCluster()
		r := newReviews(t, c)
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.URL = &url.URL{Path: path, RawQuery: query}
		request.Header["Authorization"] = []string{authorization}
		behind := &passed{}
		r.Handler(behind).ServeHTTP(httptest.NewRecorder(), request)
		tokens, rights := c.asked()
		require.Equal(t, len(behind.requests), rights)
		require.LessOrEqual(t, rights, tokens)
	})
}
