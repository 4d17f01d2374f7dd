package relay_test

import (
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/relay"
)

// TestARestartCostsNoList: a relay goes on from the files of the one before. A watch from before
// the restart is told all that happened meanwhile, and the upstream is asked for no list.
func TestARestartCostsNoList(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	u.create(t, "secrets", "ns", `{"metadata":{"name":"s"},"data":{"password":"c2VjcmV0"}}`)
	folder := filepath.Join(t.TempDir(), "journals")
	before := newRigBefore(t, u, relay.WithJournals(folder))
	client := clientset(t, before.config()).CoreV1()
	list, err := client.Pods("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.Secrets("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	before.awaitJournal(t)
	require.NoError(t, before.Shutdown(t.Context()))
	created := u.createPods(t, pod("ns", "meanwhile", "node-1"))

	after := newRigBefore(t, u, relay.WithJournals(folder))
	watcher, err := clientset(t, after.config()).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	event := <-watcher.ResultChan()
	watcher.Stop()
	require.IsType(t, &corev1.Pod{}, event.Object)
	require.Equal(t, created.UID, event.Object.(*corev1.Pod).UID)
	again := get(t, after.url+"/api/v1/namespaces/ns/pods")
	require.Len(t, names(t, again.body), len(list.Items)+1)
	require.Empty(t, again.header["Warning"], "it is proven fresh")
	require.Len(t, u.asked(func(r request) bool {
		return r.token == relayToken && r.path == "/api/v1/pods" && (!r.isWatch() || sendsState(r)) && !isQuestion(r)
	}), 1, "the first relay's")

	var files []string
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil {
			return statErr
		}
		require.Zero(t, info.Mode().Perm()&0o077, path)
		if !entry.IsDir() && filepath.Ext(path) == ".journal" {
			files = append(files, entry.Name())
		}
		return nil
	}))
	require.Equal(t, []string{"pods.v1.journal"}, files)
}

// TestACopyOfAKindReturns: a copy that has ended for lack of readers goes on from its file when the
// next one comes, though the file may still be on its way to the disk.
func TestACopyOfAKindReturns(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	g := newRigBefore(t, u, relay.WithJournals(t.TempDir()), relay.WithLinger(0))
	client := clientset(t, g.config()).CoreV1().Pods("")
	require.Equal(t, 12, strings.Count(get(t, g.url+"/api/v1/pods?watch=true&timeoutSeconds=1").body, "ADDED"))
	for range 10 {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 12)
	}
	require.Len(t, u.asked(func(r request) bool { return r.token == relayToken && sendsState(r) && r.path == "/api/v1/pods" }), 1)
}

// awaitJournal returns once the first journal has been begun.
func (g *rig) awaitJournal(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		for s := range g.Samples("relay") {
			if s.Metric.Name == "tributary_relay_journal_bytes" && s.Value > 0 {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
}

func sendsState(r request) bool {
	values := httptest.NewRequest("GET", "/?"+r.query, nil).URL.Query()
	return values.Get("sendInitialEvents") == "true"
}

// isQuestion tells a proof from a list.
func isQuestion(r request) bool {
	values := httptest.NewRequest("GET", "/?"+r.query, nil).URL.Query()
	return values.Get("limit") == "1" || strings.Contains(r.header.Get("Accept"), "PartialObjectMetadata")
}
