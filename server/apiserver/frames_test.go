package apiserver_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// beginHTTP2 begins a connection of HTTP/2 by hand. Each answer has a window of so many bytes.
func beginHTTP2(t testing.TB, connection io.ReadWriter, window uint32) *http2.Framer {
	t.Helper()
	_, err := io.WriteString(connection, http2.ClientPreface)
	require.NoError(t, err)
	framer := http2.NewFramer(connection, connection)
	require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	require.NoError(t, framer.WriteWindowUpdate(0, 1<<30))
	return framer
}

// askHTTP2 sends a GET on a stream.
func askHTTP2(t testing.TB, framer *http2.Framer, id uint32, path string) {
	t.Helper()
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"},
		{Name: ":path", Value: path},
	} {
		require.NoError(t, encoder.WriteField(f))
	}
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, EndStream: true, EndHeaders: true, BlockFragment: []byte(block.String()),
	}))
}
