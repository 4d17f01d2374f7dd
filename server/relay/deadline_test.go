package relay_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withDeadline is an answer that knows its write deadline, as that of an HTTP/2 server.
type withDeadline struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *withDeadline) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// TestARefusalLeavesNoDeadline: a watch from before the copy is refused by the copy, and passed on.
// No write deadline stands while it is open: HTTP/2 cuts a stream at its deadline.
func TestARefusalLeavesNoDeadline(t *testing.T) {
	u := newUpstream(t)
	g := newRigBefore(t, u)
	list, err := clientset(t, u.config(clientToken)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	u.inhabited(t)
	require.Len(t, names(t, get(t, g.url+"/api/v1/pods").body), 12, "there is a copy")
	w := &withDeadline{ResponseRecorder: httptest.NewRecorder()}
	path := "/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=" + list.ResourceVersion
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	require.Contains(t, w.Body.String(), `"ADDED"`, "the upstream has answered")
	require.Zero(t, w.deadline)
}
