package fidelity_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersAreThoseOfTheAPIServer sends every case of the table to both servers. A case that is
// said to differ must differ: its reason goes when the difference does.
func TestAnswersAreThoseOfTheAPIServer(t *testing.T) {
	theirs := startReal(t)
	ours := startOurs(t)
	n := 0
	t.Run("cases", func(t *testing.T) {
		for _, s := range readCases(t) {
			for _, c := range s.cases {
				n++
				namespace := fmt.Sprintf("case-%d", n)
				t.Run(s.title+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					compare(t, c, theirs, ours, namespace)
				})
			}
		}
	})
	t.Logf("%d cases", n)
}

func compare(t *testing.T, c *testCase, theirs, ours *side, namespace string) {
	theirs.makeNamespace(t, namespace)
	ours.makeNamespace(t, namespace)
	want, got := theirs.run(t, c, namespace), ours.run(t, c, namespace)
	if c.differ != "" {
		require.NotEqual(t, want, got, "the answers agree: remove the reason (%s)", c.differ)
		return
	}
	for i := range want {
		require.Equal(t, want[i], got[i], "request %d: %s %s", i+1, c.steps[i].method, c.steps[i].path)
	}
}

func (s *side) makeNamespace(t testing.TB, name string) {
	t.Helper()
	body := strings.NewReader(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`)
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, s.url+"/api/v1/namespaces", body)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusCreated, answer.StatusCode, s.name)
}
