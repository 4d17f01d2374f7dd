package fidelity_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWebSocketWatch has both servers tell a watch over a web socket, as a browser's program does.
func TestWebSocketWatch(t *testing.T) {
	sides := []*side{startReal(t), startOurs(t)}
	for name, accept := range map[string]string{
		"json": "", "protobuf": "application/vnd.kubernetes.protobuf",
		"metadata": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"table":    "application/json;as=Table;g=meta.k8s.io;v=v1",
	} {
		t.Run(name, func(t *testing.T) {
			var told [2][]string
			for i, s := range sides {
				namespace := "sockets-" + name
				s.makeNamespace(t, namespace)
				path, object := "/api/v1/namespaces/"+namespace+"/configmaps", `{"data":{"k":"v"},"metadata":{"name":%q}}`
				if name == "table" { // whose columns are those of the definition
					path = "/apis/" + widgetGroup + "/v1/namespaces/" + namespace + "/widgets"
					object = `{"apiVersion":"` + widgetGroup + `/v1","kind":"Widget","metadata":{"name":%q},"spec":{}}`
				}
				s.post(t, path, fmt.Sprintf(object, "first"))
				config := s.socket(t, path+"?watch=1&timeoutSeconds=2&fieldSelector=metadata.name!=kube-root-ca.crt")
				if accept != "" {
					config.Header.Set("Accept", accept)
				}
				conn, err := config.DialContext(t.Context())
				require.NoError(t, err, s.name)
				s.post(t, path, fmt.Sprintf(object, "second"))
				told[i] = messages(t, conn, namespace)
			}
			require.Equal(t, told[0], told[1])
			require.Len(t, told[0], 3, "two objects and the end: %v", told[0])
		})
	}
	t.Run("refused", func(t *testing.T) {
		var answers [2]string
		for i, s := range sides {
			for _, path := range []string{"/api/v1/configmaps?watch=1&resourceVersion=x", "/api/v1/nothing?watch=1"} {
				_, err := s.socket(t, path).DialContext(t.Context())
				var refusal *websocket.DialError
				require.ErrorAs(t, err, &refusal)
				answers[i] += fmt.Sprintln(path, refusal.Err)
			}
		}
		require.Equal(t, answers[0], answers[1])
	})
}

// messages are all that a server says until it ends the watch.
func messages(t *testing.T, conn *websocket.Conn, namespace string) (all []string) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	for {
		kind, message := byte(0), ""
		err := websocket.Codec{Unmarshal: func(data []byte, payloadType byte, _ any) error {
			kind, message = payloadType, string(data)
			return nil
		}}.Receive(conn, nil)
		if err != nil {
			return append(all, err.Error())
		}
		if kind == websocket.BinaryFrame { // its bytes differ by UIDs, versions and times
			var event metav1.WatchEvent
			require.NoError(t, event.Unmarshal([]byte(message)))
			require.True(t, strings.HasPrefix(string(event.Object.Raw), "k8s\x00"))
			message = fmt.Sprint(event.Type, strings.Count(message, namespace), strings.Count(message, "first"))
		} else {
			var document any
			require.NoError(t, json.Unmarshal([]byte(message), &document), message)
			text, err := json.Marshal(normal(document, ""))
			require.NoError(t, err)
			message = string(text) + message[len(strings.TrimRight(message, "\n")):]
		}
		all = append(all, fmt.Sprint(kind, " ", message))
	}
}

// socket is what a client asks for a web socket by.
func (s *side) socket(t *testing.T, path string) *websocket.Config {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(s.url, "http")+path, s.url)
	require.NoError(t, err)
	config.Header = http.Header{"Authorization": {"Bearer " + s.token}}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.authority)
	config.TlsConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return config
}

func (s *side) post(t *testing.T, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusCreated, answer.StatusCode)
}
