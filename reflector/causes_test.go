package reflector_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

const (
	// unknownResource is what kube-apiserver 1.36.3 answers for an unknown resource of a group that
	// it has. For a group that it does not have, it answers what [http.NotFound] does.
	unknownResource = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`
	// user stands before the host of an address; no error may show it.
	user = "admin:hunter2@"
)

func secure(t *testing.T, settings *tls.Config) (address string, authority []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of each handshake that fails
	server.TLS = settings
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func plain(t *testing.T, answer http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func expired(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
}

func plugin(command string) *api.ExecConfig {
	return &api.ExecConfig{
		Command: command, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode,
	}
}

// TestEachCauseHasAClassAndASentence: a wrong address, name, certificate or credential shows in
// Status and in one error line, over real connections. The sentence says what was asked and what to
// do; it has no query, no user, no body and no token.
func TestEachCauseHasAClassAndASentence(t *testing.T) {
	address, authority := secure(t, nil)
	insecure := rest.TLSClientConfig{Insecure: true}
	asksForOne, _ := secure(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	old, _ := secure(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	outdated, itself := secure(t, expired(t))
	broken, _ := secure(t, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, io.EOF }})
	notFound := plain(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "hunter2", http.StatusNotFound) })
	unknown := plain(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, unknownResource)
	})
	nginx := plain(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "The plain HTTP request was sent to HTTPS port hunter2", http.StatusBadRequest)
	})
	loop := plain(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/hunter2", http.StatusFound) })
	login := plain(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>hunter2</html>") })
	health := plain(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hunter2") })
	other := plain(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, `{"hunter2":[]}`) })
	spaced := plain(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "\n<html>hunter2</html>") })
	services := plain(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"ServiceList","apiVersion":"v1","items":[{"metadata":{"name":"hunter2"}}]}`)
	})
	nowhere := plain(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusFound) })
	aborts := func(begun string) (address string) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begun != "" {
				_, _ = io.WriteString(w, begun)
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	reset, cut := aborts(""), aborts(`{"kind":"PodList","items":[`)
	garbage := filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(garbage, []byte("#!/bin/sh\necho hunter2: [hunter2\n"), 0o700))
	widgets := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for name, c := range map[string]struct {
		config    rest.Config
		version   schema.GroupVersion
		resource  string
		namespace string
		class     reflector.Class
		text      string
	}{
		"wrong name": {
			rest.Config{Host: "http://" + user + unknown}, corev1.SchemeGroupVersion, "podz", "", reflector.NotFound,
			`podz: the server could not find the requested resource: no resource "podz" in v1: ` +
				`compare plural name, group and version with kubectl api-resources`,
		},
		"wrong name in a namespace": {
			rest.Config{Host: "http://" + user + unknown}, schema.GroupVersion{Group: "apps", Version: "v9"}, "deployments", "shop", reflector.NotFound,
			`deployments in shop: the server could not find the requested resource: no resource "deployments" in apps/v9: ` +
				`compare plural name, group and version with kubectl api-resources, and whether it has namespaces`,
		},
		"404 without a Status": {
			rest.Config{Host: "http://" + user + notFound + "/prefix"}, widgets, "widgets", "", reflector.NotFound,
			`widgets: the server answered 404 Not Found without a Status (GET http://` + notFound + `/prefix/apis/example.com/v1/widgets): ` +
				`nothing serves example.com/v1 there: check that its CRD is installed, and look for a wrong path or a proxy in the address`,
		},
		"HTTP to a port of HTTPS": {
			rest.Config{Host: "http://" + user + address}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`pods: the server speaks HTTPS and was asked in plain HTTP: begin the address with https:// (GET http://` + address + `/api/v1/pods)`,
		},
		"an address without a scheme": {
			rest.Config{Host: address}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`pods: the server speaks HTTPS and was asked in plain HTTP: begin the address with https:// (GET http://` + address + `/api/v1/pods)`,
		},
		"HTTP to nginx": {
			rest.Config{Host: "http://" + user + nginx}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`pods: the server speaks HTTPS and was asked in plain HTTP: begin the address with https:// (GET http://` + nginx + `/api/v1/pods)`,
		},
		"HTTPS to a port of HTTP": {
			rest.Config{Host: "https://" + user + notFound, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`pods: Get "https://` + notFound + `/api/v1/pods": http: server gave HTTP response to HTTPS client: ` +
				`begin the address with http://, or correct its port`,
		},
		"unknown authority": {
			rest.Config{Host: "https://" + user + address}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`pods: Get "https://` + address + `/api/v1/pods": tls: failed to verify certificate: x509: certificate signed by unknown authority: ` +
				`give the authority that signed it as rest.Config.TLSClientConfig.CAFile or CAData; if the file was replaced, ` +
				`client-go reads it within 5 minutes, and before 0.36 never: restart the program then`,
		},
		"expired certificate": {
			rest.Config{Host: "https://" + user + outdated, TLSClientConfig: rest.TLSClientConfig{CAData: itself}},
			corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`: renew the server's certificate, or correct the clock of this machine`,
		},
		"another name": {
			rest.Config{Host: "https://" + user + address, TLSClientConfig: rest.TLSClientConfig{CAData: authority, ServerName: "kube.example"}},
			corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`not kube.example: use a name of the certificate in the address, or set rest.Config.TLSClientConfig.ServerName`,
		},
		"no certificate of the client": {
			rest.Config{Host: "https://" + user + asksForOne, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			// net/http may say before it where its reading ended.
			`remote error: tls: certificate required: the server refused the client's certificate, ` +
				`or asks for one: check CertFile and KeyFile of rest.Config.TLSClientConfig`,
		},
		"no common version": {
			rest.Config{Host: "https://" + user + old, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.TLS,
			`tls: protocol version not supported: the server refused the TLS handshake: compare the TLS versions and ciphers of both sides`,
		},
		"a server out of order": {
			rest.Config{Host: "https://" + user + broken, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.Unreachable,
			`tls: internal error: the server could not serve TLS: look at its log`,
		},
		"a loop of redirects": {
			rest.Config{Host: "http://" + user + loop}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: this address answers with ten redirects in a row, not as a Kubernetes API does: check the URL, and the proxies before it ` +
				`(GET http://` + loop + `/api/v1/pods)`,
		},
		"a redirect to nowhere": {
			rest.Config{Host: "http://" + user + nowhere}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: the server answered 302 Found without a Status (GET http://` + nowhere + `/api/v1/pods)`,
		},
		"a page of HTML": {
			rest.Config{Host: "http://" + user + login}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: this address answers with a page of HTML, not as a Kubernetes API does: check the URL, and the proxies before it ` +
				`(GET http://` + login + `/api/v1/pods)`,
		},
		"a page that begins with a line break": {
			rest.Config{Host: "http://" + user + spaced}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: this address answers with malformed JSON, not as a Kubernetes API does`,
		},
		"a word": {
			rest.Config{Host: "http://" + user + health}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: this address answers with neither JSON nor protobuf, not as a Kubernetes API does`,
		},
		"other JSON": {
			rest.Config{Host: "http://" + user + other}, corev1.SchemeGroupVersion, "pods", "", reflector.WrongAnswer,
			`pods: this address answers with JSON that is no `, // event, or list
		},
		"another resource": {
			rest.Config{Host: "http://" + user + services}, corev1.SchemeGroupVersion, "services", "", reflector.WrongAnswer,
			`services: `, // no event; and then a ServiceList, not a PodList
		},
		"an HTTP/2 stream that is reset": {
			rest.Config{Host: "https://" + user + reset, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.Disconnected,
			`INTERNAL_ERROR; received from peer`,
		},
		"an HTTP/2 stream that is reset in the middle": {
			rest.Config{Host: "https://" + user + cut, TLSClientConfig: insecure}, corev1.SchemeGroupVersion, "pods", "", reflector.Disconnected,
			`INTERNAL_ERROR; received from peer`,
		},
		"no plugin": {
			rest.Config{Host: "https://" + address, TLSClientConfig: insecure, ExecProvider: plugin("no-such-plugin")},
			corev1.SchemeGroupVersion, "pods", "", reflector.Credentials,
			`pods: Get "https://` + address + `/api/v1/pods": no credentials, so nothing was sent: exec: executable no-such-plugin not found: ` +
				`install the credential plugin, or correct its command in the kubeconfig`,
		},
		"a plugin that fails": {
			rest.Config{Host: "https://" + address, TLSClientConfig: insecure, ExecProvider: plugin("false")},
			corev1.SchemeGroupVersion, "pods", "", reflector.Credentials,
			`exec: executable false failed with exit code 1: run the credential plugin by hand; it says on standard error what it lacks`,
		},
		"a plugin that says something else": {
			rest.Config{Host: "https://" + address, TLSClientConfig: insecure, ExecProvider: plugin(garbage)},
			corev1.SchemeGroupVersion, "pods", "", reflector.Credentials,
			`exec: the output of the credential plugin cannot be decoded: run the plugin by hand`,
		},
		"a token with a line break": {
			rest.Config{Host: "https://" + address, TLSClientConfig: insecure, BearerToken: "hunter2\nhunter2"},
			corev1.SchemeGroupVersion, "pods", "", reflector.Credentials,
			`no credentials, so nothing was sent: the token has a character that no header may have: look for line breaks in it`,
		},
		"another scheme": {
			rest.Config{Host: "ftp://" + user + address}, corev1.SchemeGroupVersion, "pods", "", reflector.Unknown,
			`pods: Get "ftp://` + address + `/api/v1/pods": unsupported protocol scheme "ftp": begin the address with https:// or http://`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.QPS = -1
			client, err := listwatch.NewRESTClient(&c.config, c.version)
			require.NoError(t, err)
			defer client.(*rest.RESTClient).Client.CloseIdleConnections()
			var options []listwatch.Option
			if c.namespace != "" {
				options = append(options, listwatch.InNamespace(c.namespace))
			}
			var l logged
			ended := endings{seen: make(chan reflector.Class, 100)}
			r := reflector.New(listwatch.FromClient[corev1.Pod](client, c.resource, options...), store.NewIndexer[*corev1.Pod](),
				reflector.WithBackoff(time.Millisecond, 2*time.Millisecond), reflector.WithMetrics(ended), reflector.WithLogger(l.logger(0)))
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error)
			go func() { over <- r.Run(ctx) }()
			for range 3 { // when the third has ended, Status shows the second
				require.Equal(t, c.class, <-ended.seen)
			}
			cancel()
			require.NoError(t, <-over)
			s := r.Status()
			require.Equal(t, c.class, s.Class)
			require.ErrorContains(t, s.Err, c.text)
			require.NotContains(t, s.String(), "hunter2")
			require.NotContains(t, s.String(), "sendInitialEvents")
			require.Empty(t, l.with("hunter2"))
			if c.class == reflector.TLS || c.class == reflector.Credentials {
				require.Len(t, l.with("List-watch is failing", `"error"=`), 1, "a person must act")
			}
		})
	}
}

// TestAnEmptyAnswer: a 200 without a body is no list.
func TestAnEmptyAnswer(t *testing.T) {
	address := plain(t, func(http.ResponseWriter, *http.Request) {})
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://" + address}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	defer client.(*rest.RESTClient).Client.CloseIdleConnections()
	for _, err = range listwatch.FromClient[corev1.Pod](client, "pods").List(t.Context(), metav1.ListOptions{}).Items {
		require.Equal(t, reflector.WrongAnswer, reflector.Classify(err))
		require.ErrorContains(t, err, "this address answers with an empty body, not as a Kubernetes API does")
	}
	require.Error(t, err)
}

// endings tells how requests ended.
type endings struct{ seen chan reflector.Class }

func (e endings) ListEnded(s reflector.ListStats)   { e.tell(s.Class) }
func (e endings) WatchEnded(s reflector.WatchStats) { e.tell(s.Class) }

func (e endings) tell(class reflector.Class) {
	select {
	case e.seen <- class:
	default:
	}
}

// TestListsStandInForWatchesThatAreAnsweredWithAPage, as a proxy does that knows no watches.
func TestListsStandInForWatchesThatAreAnsweredWithAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, "<html>") },
			listwatchtest.On(listwatchtest.Watch), listwatchtest.UntilLifted())
		copied := store.NewIndexer[*corev1.Pod]()
		r := reflector.New(pods.ListerWatcher(), copied)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		require.NoError(t, r.WaitSynced(ctx))
		time.Sleep(time.Minute) // of the simulated clock
		pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}})
		time.Sleep(time.Minute)
		require.Equal(t, 1, copied.Snapshot().Len())
		require.Equal(t, reflector.WrongAnswer, r.Status().Class)
		cancel()
		require.NoError(t, <-ended)
	})
}
