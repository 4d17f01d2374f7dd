package apiserver_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestHosts: a request is answered if it names an address that the server listens on. A name of
// another's is refused for reads, writes and health checks, and so is an address of another's.
func TestHosts(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	for _, host := range []string{
		"localhost", "LOCALHOST.", "console.localhost", "localhost:" + port, "localhost:9", "127.0.0.1", "127.0.0.1:9", "127.8.8.8:" + port,
		"[::1]:" + port, "[::1]", "::1", "[::ffff:127.0.0.1]:80",
	} {
		require.Equal(t, http.StatusOK, r.get(t, "/api/v1/pods", "Host", host).code, host)
	}
	refused := []string{
		"rebound.example", "rebound.example:" + port, "localhost.rebound.example", "127.0.0.1.rebound.example:" + port, "notlocalhost",
		"10.0.0.1", "0.0.0.0:" + port, "[2001:db8::1]:" + port, "2130706433", "a:b:c",
	}
	for _, host := range refused {
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/ns/pods/a", "/api", "/version", "/readyz", "/openapi/v2", "/"} {
			answer := r.get(t, path, "Host", host)
			require.Equal(t, http.StatusForbidden, answer.code, "%s of %s", path, host)
			require.Contains(t, answer.status(t).Message, "--host", "the error says what to do")
		}
		require.Equal(t, http.StatusForbidden, r.do(t, "DELETE", "/api/v1/namespaces/ns/pods/a", "", "Host", host).code, host)
	}
	require.Len(t, r.get(t, "/api/v1/pods").pods(t).Items, 1)

	for _, wrong := range []string{"", "http://rebound.example", "rebound.example:80", "rebound.example/", "a b"} {
		require.ErrorContains(t, r.AllowHosts(wrong), "without a port", wrong)
	}
	require.NoError(t, r.AllowHosts("Relay.prod.svc", "10.0.0.1", "2001:db8::1"))
	for _, host := range []string{"relay.prod.svc", "RELAY.prod.svc.:80", "10.0.0.1:80", "[2001:db8::1]:80"} {
		require.Equal(t, http.StatusOK, r.get(t, "/readyz", "Host", host).code, host)
	}
	require.Equal(t, http.StatusForbidden, r.get(t, "/readyz", "Host", refused[0]).code)
	require.NoError(t, r.AllowHosts("*"))
	require.Equal(t, http.StatusOK, r.get(t, "/readyz", "Host", refused[0]).code)
}

// TestHostOfTheListener: the address at which a connection has arrived is no foreign one.
func TestHostOfTheListener(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(s)
	require.NoError(t, web.Listener.Close())
	web.Listener = listener
	web.Start()
	t.Cleanup(web.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if ip.IsLinkLocalUnicast() {
			continue // its URL has a zone
		}
		answer, err := http.Get("http://" + net.JoinHostPort(ip.String(), port) + "/version")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, ip)
	}
}

// TestRequestsOfPages: what a page of another origin can have a browser send reads nothing and
// writes nothing. Pages of the server's own origin, and of those that it was told, may.
func TestRequestsOfPages(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	const all, body = "/api/v1/namespaces/ns/pods", `{"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	write := func(method, path string, header ...string) int {
		t.Helper()
		send := body
		if method == http.MethodDelete {
			send = ""
		}
		return r.do(t, method, path+"?dryRun=All", send, header...).code
	}
	// fetch with no-cors and a Blob without a type; a form.
	require.Equal(t, http.StatusUnsupportedMediaType, write("POST", all, "Content-Type", ""))
	require.Equal(t, http.StatusUnsupportedMediaType, write("PUT", all+"/a", "Content-Type", ""))
	require.Equal(t, http.StatusUnsupportedMediaType, r.do(t, "DELETE", all+"/a", `{"dryRun":["All"]}`, "Content-Type", "").code)
	require.Equal(t, http.StatusUnsupportedMediaType, r.do(t, "POST", all+"/a/eviction", "{}", "Content-Type", "").code)
	require.Equal(t, http.StatusUnsupportedMediaType, r.do(t, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}", "Content-Type", "").code)
	for _, simple := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"} {
		require.Equal(t, http.StatusUnsupportedMediaType, write("POST", all, "Content-Type", simple), simple)
	}

	foreign := [][]string{
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://localhost:1"},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site", "Origin", r.url},
	}
	own := [][]string{nil, {"Origin", r.url}, {"Sec-Fetch-Site", "same-origin", "Origin", "http://elsewhere"}, {"Sec-Fetch-Site", "none"}}
	judged := func(want map[string]int, headers [][]string) {
		t.Helper()
		for _, header := range headers {
			require.Equal(t, want["POST"], write("POST", all, header...), header)
			require.Equal(t, want["DELETE"], write("DELETE", all+"/a", header...), header)
			require.Equal(t, want["DELETE"], write("DELETE", all, header...), header)
		}
	}
	const refused = http.StatusForbidden
	judged(map[string]int{"POST": refused, "DELETE": refused}, foreign)
	judged(map[string]int{"POST": http.StatusCreated, "DELETE": http.StatusOK}, own)
	require.Equal(t, refused, write("PUT", all+"/a", foreign[0]...))
	require.Equal(t, refused, write("PATCH", all+"/a", append([]string{"Content-Type", "application/merge-patch+json"}, foreign[0]...)...))
	require.Equal(t, http.StatusMethodNotAllowed, r.do(t, "OPTIONS", all, "", foreign[0]...).code, "no permission for a preflight")

	require.ErrorContains(t, r.AllowOrigins("console.example"), "such as http://localhost:5173")
	require.NoError(t, r.AllowOrigins("https://console.example"))
	trusted := [][]string{{"Origin", "https://console.example", "Sec-Fetch-Site", "cross-site"}, {"Origin", "https://console.example"}}
	judged(map[string]int{"POST": http.StatusCreated, "DELETE": http.StatusOK}, trusted)
	judged(map[string]int{"POST": refused, "DELETE": refused}, foreign)
}

// TestWebSocketsOfPages: a page of another origin gets no web socket, which it could read.
func TestWebSocketsOfPages(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
		r := newRig(t)
		r.create(t, pod("a"))
		if r.web != http.DefaultClient {
			t.Skip("no web socket is served over HTTP/2")
		}
		dial := func(origin string, header ...string) error {
			config, err := websocket.NewConfig("ws"+strings.TrimPrefix(r.url, "http")+"/api/v1/pods?watch=1", origin)
			require.NoError(t, err)
			for i := 0; i < len(header); i += 2 {
				config.Header.Set(header[i], header[i+1])
			}
			conn, err := config.DialContext(t.Context())
			if err != nil {
				return err
			}
			return conn.Close()
		}
		require.NoError(t, dial(r.url))
		for _, origin := range []string{"https://evil.example", "http://localhost:1"} {
			require.ErrorContains(t, dial(origin), websocket.ErrBadStatus.Error(), origin)
		}
		require.ErrorContains(t, dial(r.url, "Sec-Fetch-Site", "cross-site"), websocket.ErrBadStatus.Error())
		require.NoError(t, r.AllowOrigins("http://localhost:1"))
		require.NoError(t, dial("http://localhost:1"))
	})
}
