package sources_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// planted stands for a token, a key or a password wherever one can be.
const planted = "Zq7planted7qZ"

// asPlanted are the forms in which it could get out.
func asPlanted() []string {
	forms := []string{planted, strings.ToLower(planted), strings.ToUpper(planted), url.QueryEscape("\"" + planted), fmt.Sprintf("%x", planted)}
	for shift := range 3 { // of base64, whatever comes before and after
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + planted))
		forms = append(forms, encoded[4:len(encoded)-4])
	}
	return forms
}

// broken are manifests that hold the secret, each with another fault.
func broken() map[string]string {
	secret := strings.Replace(manifestOf("p", "v1"), "    image", "    env: [{name: TOKEN, value: "+planted+"}]\n    image", 1)
	return map[string]string{
		"cut":             secret[:len(secret)-len("    image: v1\n")-4],
		"a quote":         secret + "    args: [\"" + planted,
		"a tab":           secret + "\t" + planted + ": x\n",
		"an alias":        secret + "    args: *" + planted + "\n",
		"a tag":           secret + "    args: !!int " + planted + "\n",
		"a key":           secret + "  ? [" + planted + "]\n  : x\n",
		"twice":           secret + "    image: " + planted + "\n",
		"a port":          secret + "    ports: [{containerPort: " + planted + "}]\n",
		"a quantity":      secret + "    resources: {limits: {memory: " + planted + "}}\n",
		"an env name":     secret + "    envFrom: [{prefix: \"=" + planted + "\"}]\n",
		"a policy":        secret + "  restartPolicy: " + planted + "\n",
		"a name":          strings.Replace(secret, "name: p", "name: p_"+planted, 1),
		"a label":         strings.Replace(secret, "name: p", "name: p\n  labels: {a: \"!"+planted+"\"}", 1),
		"a kind":          strings.Replace(secret, "kind: Pod", "kind: "+planted, 1),
		"a version":       strings.Replace(secret, "apiVersion: v1", "apiVersion: "+planted+"/v9/x", 1),
		"no manifest":     planted,
		"text behind":     secret + "---\n" + planted + "\n",
		"JSON":            `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":"` + planted + `"}}`,
		"JSON, cut":       `{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"` + planted,
		"JSON, a comment": `{"apiVersion":"v1","kind":"Pod"} // ` + planted,
		"a bad item": podList(item("p", "v1"), `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"`+
			planted+`"}],"ports":"`+planted+`"}]}}`),
	}
}

// answers are what a server can do wrong with a secret in hand.
func answers() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"401": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, planted, http.StatusUnauthorized) },
		"403": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"token":"`+planted+`"}`, http.StatusForbidden)
		},
		"500": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat(planted, 1e4), http.StatusInternalServerError)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/?token="+planted, http.StatusFound)
		},
		"redirect to itself": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://u:"+planted+"@"+r.Host+r.URL.Path+"?again="+planted, http.StatusTemporaryRedirect)
		},
		"the request back": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			_ = r.Write(w)
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"WWW-Authenticate", "Set-Cookie", "Content-Type", "Warning", "Retry-After", "Etag"} {
				w.Header().Set(name, planted)
			}
			w.WriteHeader(503)
		},
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, planted)
		},
	}
	for name, text := range map[string]string{
		"no HTTP": planted + "\r\n\r\n", "version": "HTTP/" + planted + " 200 OK\r\n\r\n", "status": "HTTP/1.1 " + planted + " OK\r\n\r\n",
		"reason": "HTTP/1.1 500 " + planted + "\r\n\r\n", "header": "HTTP/1.1 200 OK\r\n" + planted + "\r\n\r\n",
		"length": "HTTP/1.1 200 OK\r\nContent-Length: " + planted + "\r\n\r\n", "encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + planted + "\r\n\r\n",
		"chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + planted + "\r\n",
		"trailer":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n" + planted + "\r\n\r\n",
		"location": "HTTP/1.1 302 Found\r\nLocation: %zz" + planted + "\r\nContent-Length: 0\r\n\r\n",
		"short":    "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + planted,
	} {
		all["raw "+name] = hijacked(text)
	}
	for name, spec := range map[string]string{"type": `"` + planted + `"`, "field": `{"containers":"` + planted + `"}`, "cut": `{"nodeName":"` + planted} {
		all["list, "+name] = body(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` +
			`{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"},"spec":` + spec + `}]}`)
	}
	for name, text := range broken() {
		all["manifest "+name] = body(text)
	}
	return all
}

// TestPlantedSecretsAreNotTold puts a secret wherever the sources read one, and makes them fail
// there. No line of the log at any verbosity, no problem, error or text of a Status has it.
func TestPlantedSecretsAreNotTold(t *testing.T) {
	rows := map[string]func(t *testing.T) []sources.Option{}
	options := func(inputs ...sources.Input) (all []sources.Option) {
		for _, input := range inputs {
			all = append(all, input)
		}
		return all
	}
	for name, address := range map[string]string{
		"refused":      "http://user:" + planted + "@127.0.0.1:1/pods?token=" + planted + "#" + planted,
		"no host":      "http://user:" + planted + "@host.invalid/pods?token=" + planted,
		"no port":      "http://user:" + planted + "@127.0.0.1:port/?token=" + planted,
		"no bracket":   "http://user:" + planted + "@[::1/?token=" + planted,
		"no escape":    "http://user:" + planted + "@127.0.0.1/%zz?token=" + planted,
		"no user":      "http://us er:" + planted + "@127.0.0.1/",
		"other scheme": "ftp://user:" + planted + "@127.0.0.1/?token=" + planted,
		"no scheme":    "user:" + planted + "@127.0.0.1/?token=" + planted,
		"control":      "http://user:" + planted + "@127.0.0.1/\x7f?token=" + planted,
	} {
		rows["address, "+name] = func(t *testing.T) []sources.Option { return options(pollingSource(t, address)) }
	}
	for name, answer := range answers() {
		rows["answer, "+name] = func(t *testing.T) []sources.Option {
			token := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(token, []byte(planted), 0o600))
			host := strings.TrimPrefix(serve(t, answer).URL, "http://")
			return options(pollingSource(t, "http://user:"+planted+"@"+host+"/pods?token="+planted,
				static.WithHeader("X-Token", planted), static.WithTokenFile(token)))
		}
		rows["API server, "+name] = func(t *testing.T) []sources.Option {
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			client, err := listwatch.NewRESTClient(&rest.Config{
				Host: serve(t, answer).URL, BearerToken: planted, Transport: transport,
			}, corev1.SchemeGroupVersion)
			require.NoError(t, err)
			return options(sources.APIServer(client))
		}
	}
	for name, option := range map[string]static.Option{
		"header value": static.WithHeader("X-Token", planted+"\n"), "header name": static.WithHeader("X-Token: "+planted+"\n", "x"),
	} {
		rows[name] = func(t *testing.T) []sources.Option {
			return options(pollingSource(t, serve(t, body(podList())).URL, option))
		}
	}
	for name, content := range map[string]string{"two lines": planted + "\n" + planted, "control": planted + "\x00", "large": strings.Repeat(planted, 1e6)} {
		for kind, of := range map[string]func(path string) static.Option{
			"token": static.WithTokenFile, "CA": static.WithCA,
			"certificate": func(path string) static.Option { return static.WithClientCertificate(path, path) },
		} {
			rows[kind+" file, "+name] = func(t *testing.T) []sources.Option {
				path := filepath.Join(t.TempDir(), "file")
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
				return options(sources.HTTP(serve(t, status(401)).URL, static.WithInterval(5*time.Millisecond), of(path)))
			}
		}
	}
	for name, content := range broken() {
		for kind, like := range map[string][]sources.Option{"file": nil, "file like the kubelet's": {sources.LikeKubelet()}} {
			rows[kind+", "+name] = func(t *testing.T) []sources.Option {
				folder := t.TempDir()
				put(t, filepath.Join(folder, "p.yaml"), content)
				return append(options(sources.File(folder, static.WithInterval(5*time.Millisecond))), like...)
			}
		}
	}
	for name, content := range map[string]string{"short": planted, "long": strings.Repeat(planted, 1000)} {
		rows["checkpoint, "+name] = func(t *testing.T) []sources.Option {
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, "node-1.pods"), []byte(content), 0o600))
			c := newCluster(t)
			// The list of a pod ends the problem, maybe before the test has seen it.
			c.create("a", onNode("node-1"))
			return append(options(sources.APIServer(c.client)), sources.Checkpoint(folder))
		}
	}
	for name, prepare := range rows {
		t.Run(name, func(t *testing.T) {
			var log logLines
			r := start(t, append(prepare(t), sources.WithLogger(log.logger()))...)
			require.Eventually(t, func() bool {
				select {
				case <-r.done:
					return true
				case u := <-r.Updates():
					if len(u.Pods) > 0 {
						return true // what looks broken can be good for the kubelet
					}
				default:
				}
				for _, s := range r.Status() {
					if len(s.Problems) > 0 {
						return true
					}
				}
				return false
			}, patience, time.Millisecond, "nothing comes")
			told := fmt.Sprintf("%+v\n", r.Status())
			for _, s := range r.Status() {
				for _, problem := range s.Problems {
					told += chain(problem)
				}
			}
			r.stop()
			for range r.Updates() {
			}
			<-r.done
			told += chain(r.err) + log.text()
			for _, form := range asPlanted() {
				require.NotContains(t, told, form)
			}
		})
	}
}

// chain is the text of an error and of each error that it wraps.
func chain(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v\n%+v\n", err, err)
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		text += chain(wraps.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range wraps.Unwrap() {
			text += chain(err)
		}
	}
	return text
}
