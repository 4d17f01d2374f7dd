package watchcache_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestTokensOfANamespaceAreThoseOfTheAPIServer: kube-apiserver's token has the key after the part
// that the request names, so that of a list in one namespace begins with the object's name.
func TestTokensOfANamespaceAreThoseOfTheAPIServer(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 5), stored("b", 6), stored("c", 7)), store.At("7")))
	for namespace, below := range map[string]string{"": "ns/", "ns": ""} {
		r := watchcache.Request{Namespace: namespace}
		r.Limit = 1
		for i, name := range []string{"a", "b"} {
			page, err := c.Page(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, []string{name}, names(page.Objects))
			require.Equal(t, pagetoken.After(below+name, 7).String(), page.Meta.Continue, "page %d", i)
			r.Continue = page.Meta.Continue
		}
		// As kube-apiserver writes them: without the slash, or with it.
		for _, start := range []string{"a\\u0000", "/a\\u0000"} {
			r.Continue = foreign(below, start)
			page, err := c.Page(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, []string{"b"}, names(page.Objects))
		}
	}
}

func foreign(below, start string) string {
	slash := ""
	if start[0] == '/' {
		slash, start = "/", start[1:]
	}
	return base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":7,"start":"%s%s%s"}`, slash, below, start)))
}

func names(pods []*corev1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}
