package apiserver_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/cachetest"
)

// TestWebSocket: a watch over a web socket tells each event as a message. It ends with its client,
// with an error, or with the server.
func TestWebSocket(t *testing.T) {
	r := newRig(t)
	r.create(t, cachetest.Pod("a"))
	address := "ws" + strings.TrimPrefix(r.url, "http") + "/api/v1/pods?watch=1"
	dial := func(query string) *websocket.Conn {
		conn, err := websocket.Dial(address+query, "", r.url)
		require.NoError(t, err)
		return conn
	}
	var event metav1.WatchEvent
	told := func(conn *websocket.Conn, kind, text string) {
		require.NoError(t, websocket.JSON.Receive(conn, &event))
		require.Equal(t, kind, event.Type)
		require.Contains(t, string(event.Object.Raw), text)
	}
	leaves, stays := dial(""), dial("")
	told(leaves, "ADDED", `"name":"a"`)
	told(stays, "ADDED", `"name":"a"`)
	require.NoError(t, leaves.Close())
	require.NoError(t, websocket.Message.Send(stays, "what a client says is ignored"))
	r.create(t, cachetest.Pod("b"))
	told(stays, "ADDED", `"name":"b"`)

	r.pods.Compact()
	late := dial("&resourceVersion=1")
	told(late, "ERROR", `"code":410`)
	require.ErrorIs(t, websocket.JSON.Receive(late, &event), io.EOF)

	_, err := websocket.Dial(address, "", "")
	require.Error(t, err, "no origin")
	r.Close()
	for {
		if err := websocket.JSON.Receive(stays, &event); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
		require.Equal(t, "ERROR", event.Type)
	}
}
