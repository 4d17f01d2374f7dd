package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Etcd is the store behind the API servers: one member, without TLS, on a data folder that outlives
// its restarts.
type Etcd struct {
	process *Process
	url     string
	data    string // the folder
}

func startEtcd(t testing.TB, binary string) *Etcd {
	t.Helper()
	client, peer := "http://"+FreeAddress(t), "http://"+FreeAddress(t)
	data := filepath.Join(t.TempDir(), "data")
	e := &Etcd{url: client, data: data, process: NewProcess(t, "etcd", binary, []string{
		"--name=e2e", "--data-dir=" + data, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=e2e=" + peer,
	})}
	e.Start()
	return e
}

// Backup ends it, copies its data, and starts it again. The API servers must be down.
func (e *Etcd) Backup() (folder string) {
	t := e.process.t
	t.Helper()
	e.Kill()
	folder = filepath.Join(t.TempDir(), "backup")
	require.NoError(t, os.CopyFS(folder, os.DirFS(e.data)))
	e.Start()
	return folder
}

// Restore ends it, puts the data of a backup in the place of its own, and starts it again: what was
// written since has never been. The API servers must be down.
func (e *Etcd) Restore(backup string) {
	t := e.process.t
	t.Helper()
	e.Kill()
	require.NoError(t, os.RemoveAll(e.data))
	require.NoError(t, os.CopyFS(e.data, os.DirFS(backup)))
	e.Start()
}

// Snapshot saves what etcdctl snapshot save would, and returns the file.
func (e *Etcd) Snapshot() (file string) {
	t := e.process.t
	t.Helper()
	answer, err := http.Post(e.url+"/v3/maintenance/snapshot", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	defer answer.Body.Close()
	file = filepath.Join(t.TempDir(), "snapshot.db")
	saved, err := os.Create(file)
	require.NoError(t, err)
	for parts := json.NewDecoder(answer.Body); ; {
		var part struct {
			Result struct{ Blob []byte }
		}
		err := parts.Decode(&part)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		_, err = saved.Write(part.Result.Blob)
		require.NoError(t, err)
	}
	require.NoError(t, saved.Close())
	return file
}

// URL is where clients reach it.
func (e *Etcd) URL() string { return e.url }

// Kill ends it at once, as by kill -9. Its data stays.
func (e *Etcd) Kill() { e.process.Kill() }

// Start starts it again after Kill and waits until it is ready.
func (e *Etcd) Start() {
	e.process.t.Helper()
	e.process.Start()
	waitFor(e.process.t, e.process, func() bool {
		answer, err := http.Get(e.url + "/health")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// Pause stops it where it stands: connections stay open and nothing is answered.
func (e *Etcd) Pause() { e.process.Signal(syscall.SIGSTOP) }

// Resume lets it go on after Pause.
func (e *Etcd) Resume() { e.process.Signal(syscall.SIGCONT) }

// Compact forgets all history up to now, and returns the revision up to which it did. The API
// servers still serve what they have in memory.
func (e *Etcd) Compact() (revision string) {
	t := e.process.t
	t.Helper()
	var now struct {
		Header struct{ Revision string }
	}
	e.call("/v3/kv/range", map[string]any{"key": []byte{0}}, &now)
	e.call("/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil)
	return now.Header.Revision
}

// call asks etcd's JSON gateway, which saves a client library.
func (e *Etcd) call(path string, request, result any) {
	t := e.process.t
	t.Helper()
	body, err := json.Marshal(request)
	require.NoError(t, err)
	answer, err := http.Post(e.url+path, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode, "etcd %s", path)
	if result != nil {
		require.NoError(t, json.NewDecoder(answer.Body).Decode(result))
	}
}

// startLimit is how long a server may take to become ready: seconds, and far more on a machine that
// is building.
const startLimit = 2 * time.Minute

// waitFor polls until a server is ready. It looks often, since the moment is measured from.
func waitFor(t testing.TB, p *Process, ready func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(startLimit); !ready(); <-ticker.C {
		require.False(t, p.HasEnded(), "%s ended by itself:\n%s", p.name, tail(p.log, 25))
		require.True(t, time.Now().Before(deadline), "%s is not ready after %s:\n%s", p.name, startLimit, tail(p.log, 25))
	}
}
