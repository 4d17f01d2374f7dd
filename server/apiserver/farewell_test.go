package apiserver_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/watchcache"
)

// TestAClosingServerTakesLeave: each watch that asked for bookmarks ends with one, since a
// reflector of client-go lists again after a watch of less than a second without an event. Events
// that its client has still to be told come in place of it.
func TestAClosingServerTakesLeave(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
		r := newRig(t)
		a := r.create(t, pod("a"))
		open := func(query string) *bufio.Reader {
			answer, err := r.web.Get(r.url + "/api/v1/pods?watch=1&resourceVersion=" + a.ResourceVersion + query)
			require.NoError(t, err)
			t.Cleanup(func() { answer.Body.Close() })
			return bufio.NewReader(answer.Body)
		}
		wants, wantsNone, future := open("&allowWatchBookmarks=1"), open(""), open("0000&allowWatchBookmarks=1")
		told := open("&allowWatchBookmarks=1")
		version := r.relabel(t, a).ResourceVersion
		for _, watch := range []*bufio.Reader{wants, wantsNone, told} {
			line, err := watch.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, `{"type":"MODIFIED"`)
		}
		require.NoError(t, r.Shutdown(t.Context()))
		rest := func(watch *bufio.Reader) string {
			text, err := io.ReadAll(watch)
			require.NoError(t, err, "a proper end")
			return string(text)
		}
		for _, watch := range []*bufio.Reader{wants, told} {
			text := rest(watch)
			require.True(t, strings.HasPrefix(text, `{"type":"BOOKMARK"`), text)
			require.Contains(t, text, `"resourceVersion":"`+version+`"`)
			require.Equal(t, 1, strings.Count(text, "\n"))
		}
		require.Empty(t, rest(wantsNone))
		require.Empty(t, rest(future), "there is nothing to say before that version")

		late := r.get(t, "/api/v1/pods?watch=1&resourceVersion="+version)
		require.Equal(t, http.StatusServiceUnavailable, late.code)
		require.Equal(t, "1", late.header.Get("Retry-After"), "client-go sends the watch again, in place of a list")
	})
}
