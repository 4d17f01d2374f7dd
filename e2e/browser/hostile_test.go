package browser

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// attacks.js is what a hostile page runs. It fills window.loot.
//
//go:embed testdata/attacks.js
var attacks string

// The names of the attacker, which resolve to this machine.
const evil, rebound = "evil.example", "rebound.example"

// target is a server without authentication on this machine, with a Secret.
type target struct {
	t       *testing.T
	server  *apiserver.Server
	secrets *collection.Collection[*corev1.Secret]
	port    string
}

func startTarget(t *testing.T) *target {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	o := &target{t: t, server: s, secrets: apiserver.Serve(s, builtin.Of[*corev1.Secret]())}
	_, err = o.secrets.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password"}, Data: map[string][]byte{"value": []byte("hunter2")},
	})
	require.NoError(t, err)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		web.Close()
	})
	_, o.port, err = net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	require.NoError(t, err)
	return o
}

// names are those of the Secrets that are there.
func (o *target) names() (names []string) {
	for _, s := range o.secrets.Cache().Snapshot().All() {
		names = append(names, s.Name)
	}
	return names
}

// loot is what each attack has read; an attack that read nothing is not there.
type loot map[string]string

// attack runs the attacks in a page of an origin.
func (o *target) attack(page string, at string) loot {
	o.t.Helper()
	b := openTab(o.t, page, desktop, desktopHeight, map[string]string{evil: "127.0.0.1", rebound: "127.0.0.1"})
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](attacks+fmt.Sprintf("; attack(%q); true", at)))
	require.NoError(o.t, err)
	b.until("window.done === true")
	var got loot
	require.NoError(o.t, json.Unmarshal([]byte(value[string](b, "JSON.stringify(window.loot)")), &got))
	return got
}

// hostilePage serves an empty page of the attacker's, and returns its port.
func hostilePage(t *testing.T) (port string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>cats</title><p>cats</p>")
	}))
	t.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	require.NoError(t, err)
	return port
}

// TestAHostilePageReadsAndWritesNothing: not from an origin of its own, which asks for this
// machine's address; not from a name of its own that it has resolve to this machine; and not from
// another port of this machine.
func TestAHostilePageReadsAndWritesNothing(t *testing.T) {
	o := startTarget(t)
	page := hostilePage(t)
	for name, c := range map[string]struct{ page, at string }{
		"other origin":   {"http://" + evil + ":" + page, "127.0.0.1:" + o.port},
		"rebound name":   {"http://" + rebound + ":" + o.port + "/api/v1/secrets", rebound + ":" + o.port},
		"other port":     {"http://localhost:" + page, "localhost:" + o.port},
		"unspecified IP": {"http://" + evil + ":" + page, "0.0.0.0:" + o.port},
	} {
		t.Run(name, func(t *testing.T) {
			o.t = t
			got := o.attack(c.page, c.at)
			require.Empty(t, got)
			require.Equal(t, []string{"password"}, o.names())
		})
	}
}

// TestThePageIsHostile: the attacks are real. On a server that answers to the attacker's name they
// read, write and delete; on one that trusts the origin, the web socket reads.
func TestThePageIsHostile(t *testing.T) {
	o := startTarget(t)
	require.NoError(t, o.server.AllowHosts(rebound))
	got := o.attack("http://"+rebound+":"+o.port+"/api/v1/secrets", rebound+":"+o.port)
	require.Contains(t, got["get"], "aHVudGVyMg==")
	require.Contains(t, got["socket"], "aHVudGVyMg==")
	require.Equal(t, []string{"typed"}, o.names())

	o = startTarget(t)
	page := "http://" + evil + ":" + hostilePage(t)
	require.NoError(t, o.server.AllowOrigins(page))
	got = o.attack(page, "127.0.0.1:"+o.port)
	require.Contains(t, got["socket"], "aHVudGVyMg==")
	require.NotContains(t, got, "get")
	require.Equal(t, []string{"password"}, o.names(), "what needs no permission has no type")
}
