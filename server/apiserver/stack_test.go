//go:build !race

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWaitingWatchesHaveSmallStacks: over HTTP/2 net/http keeps a goroutine for each stream. The
// collector halves a stack of 8 KB only if less than a quarter of it is in use, net/http's part
// included. The client of the test has a goroutine per stream, too, with a stack of 4 KB.
func TestWaitingWatchesHaveSmallStacks(t *testing.T) {
	const watches, most = 2000, 13_000
	r := newRig(t)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux() // as most programs have one before us
	mux.Handle("/", r)
	listener := httptest.NewUnstartedServer(mux)
	listener.Config.Protocols = protocols
	listener.Start()
	defer listener.Close()
	defer r.Close()
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	before := stacks()
	var begun sync.WaitGroup
	for range watches {
		begun.Go(func() {
			answer, err := client.Get(listener.URL + "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=a")
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = answer.Body.Close() })
		})
	}
	begun.Wait()
	each := most
	for range 20 { // an answer begins before its watch waits
		if each = (stacks() - before) / watches; each < most {
			break
		}
		runtime.Gosched()
	}
	require.Less(t, each, most)
}

// stacks is how many bytes the stacks of all goroutines take.
func stacks() int {
	for range 4 { // each collection halves a stack once
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}
