package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// FuzzRequests: whatever a client sends, it gets an answer that is no fault of the server's.
func FuzzRequests(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/api/v1/pods", "limit=1&continue=eyJydiI6MiwibmFtZSI6ImEifQ", ""},
		{"GET", "/api/v1/namespaces/ns/pods", "fieldSelector=spec.nodeName%3Dx&resourceVersion=2&resourceVersionMatch=Exact", ""},
		{"GET", "/api/v1/pods", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1", ""},
		{"POST", "/api/v1/namespaces/ns/pods", "", `{"metadata":{"generateName":"x"}}`},
		{"PUT", "/api/v1/namespaces/ns/pods/a/status", "", `{"status":{}}`},
		{"PATCH", "/api/v1/namespaces/ns/pods/a", "", `{"spec":null}`},
		{"DELETE", "/api/v1/namespaces/ns/pods", "gracePeriodSeconds=-1", `{"preconditions":{"uid":""}}`},
		{"GET", "/apis//v1/", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		if err != nil {
			t.Skip("no such method")
		}
		request.URL = &url.URL{Path: path, RawQuery: query}
		if method == http.MethodPatch {
			request.Header.Set("Content-Type", "application/merge-patch+json")
		}
		s, err := apiserver.NewServer(watchcache.WithFreshWait(0))
		require.NoError(t, err)
		defer s.Close()
		pods := apiserver.Serve(s, watchcache.Pods())
		_, err = pods.Create(pod("a"))
		require.NoError(t, err)
		if request.URL.Query().Has("watch") {
			pods.Compact()
			s.Close()
		}
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, request)
		require.NotEqual(t, http.StatusInternalServerError, answer.Code, answer.Body.String())
	})
}
