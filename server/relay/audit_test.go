package relay_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/identity"
	"github.com/tributary-go/tributary/server/relay"
)

// TestEachReadOfACopyIsAudited: with its user, its target and the decision, and without what could
// be secret. What the upstream answers is in the upstream's own log.
func TestEachReadOfACopyIsAudited(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	var mu sync.Mutex
	var all []relay.Read
	access := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			identity.Note(r.Context(), "jane")
			if r.Header.Get("X-Refuse") != "" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	g := &rig{upstream: u}
	g.listen(t, u.config(relayToken), access, []relay.Option{relay.WithAudit(func(r relay.Read) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r)
	})})
	get(t, g.url+"/api/v1/namespaces/ns/pods?labelSelector=app%3Dhunter2")
	get(t, g.url+"/api/v1/namespaces/ns/pods/pod-0")
	get(t, g.url+"/api/v1/namespaces/ns/pods/none")
	get(t, g.url+"/api/v1/pods?watch=1&timeoutSeconds=1")
	get(t, g.url+"/api/v1/pods", "X-Refuse", "1")
	get(t, g.url+"/api/v1/namespaces/ns/pods/pod-0/log") // these three are the upstream's
	get(t, g.url+"/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds=1")
	get(t, g.url+"/version")
	var short []string
	for _, r := range all {
		require.NotZero(t, r.Time)
		require.Contains(t, r.Client, "127.0.0.1:")
		short = append(short, strings.Join([]string{r.User, r.Verb, r.Version, r.Resource, r.Namespace, r.Name, r.Decision, http.StatusText(r.Code), r.Source}, " "))
	}
	require.Equal(t, []string{
		"jane list v1 pods ns  allow OK cache", "jane get v1 pods ns pod-0 allow OK cache", "jane get v1 pods ns none allow Not Found none",
		"jane watch v1 pods   allow OK cache", "jane list v1 pods   forbid Forbidden none",
	}, short)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter2")
	require.NotContains(t, string(text), clientToken)
}
