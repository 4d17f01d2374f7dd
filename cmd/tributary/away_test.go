package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// transcript is what a process has written so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// asEtcd makes the test binary an etcd with its data in the folder that it names, on the address in
// asEtcdAt.
const asEtcd, asEtcdAt = "TRIBUTARY_TEST_AS_ETCD", "TRIBUTARY_TEST_AS_ETCD_AT"

func beEtcd(folder string) {
	config := embed.NewConfig()
	config.Dir, config.ZapLoggerBuilder = folder, embed.NewZapLoggerBuilder(zap.NewNop())
	at := url.URL{Scheme: "http", Host: os.Getenv(asEtcdAt)}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	server, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	<-server.Server.ReadyNotify()
	fmt.Println("ready")
	<-server.Err()
	os.Exit(exitFailed)
}

// startEtcd runs an etcd in a process of its own.
func startEtcd(t *testing.T, folder, address string) *exec.Cmd {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), asEtcd+"="+folder, asEtcdAt+"="+address)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		_ = process.Wait()
	})
	_, err = io.ReadFull(out, make([]byte, len("ready")))
	require.NoError(t, err)
	return process
}

// readyz asks a program whether it is ready.
func (p *program) readyz() (code int, text string) {
	p.t.Helper()
	client, err := rest.HTTPClientFor(p.config)
	require.NoError(p.t, err)
	response, err := client.Get(p.url + "/readyz?verbose")
	require.NoError(p.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.StatusCode, string(body)
}

// TestEtcdAway: when its etcd is stopped, and when it is killed, the program says so within two
// seconds: since when, and what to do. It is not ready, and a write is soon a 503 that names the
// cause. When the etcd is back, all goes on by itself.
func TestEtcdAway(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, folder := free.Addr().String(), filepath.Join(t.TempDir(), "etcd")
	require.NoError(t, free.Close())
	process := startEtcd(t, folder, address)
	p := launch(t, "--etcd", "http://"+address, "--resource", "pods")
	create := func(name string) error {
		_, err := p.client().CoreV1().Pods("default").Create(t.Context(), pod(name), metav1.CreateOptions{})
		return err
	}
	require.NoError(t, create("before"))
	code, text := p.readyz()
	require.Equal(t, 200, code)
	require.Contains(t, text, "[+]etcd ok\n")

	for i, outage := range []struct {
		begin, end func()
	}{
		{func() { require.NoError(t, process.Process.Signal(syscall.SIGSTOP)) }, func() { require.NoError(t, process.Process.Signal(syscall.SIGCONT)) }},
		{func() { require.NoError(t, process.Process.Kill()) }, func() { startEtcd(t, folder, address) }},
	} {
		since := time.Now()
		outage.begin()
		told := func() bool { return strings.Count(p.stderr.String(), "has not answered since") == i+1 }
		require.Eventually(t, told, patience, 10*time.Millisecond)
		require.Less(t, time.Since(since), 3*time.Second, "two, and one for a busy machine")
		require.Contains(t, p.stderr.String(), "etcd at http://"+address+" has not answered since "+since.Format("15:04"))
		require.Contains(t, p.stderr.String(), "Start it, or see its log")
		code, text := p.readyz()
		require.Equal(t, 500, code)
		require.Contains(t, text, "[-]etcd failed: no answer since "+since.UTC().Format("2006-01-02T15:04"))

		asked := time.Now()
		err := create(fmt.Sprint("lost-", i))
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.ErrorContains(t, err, "etcd")
		require.ErrorContains(t, err, "nothing was written")
		require.Less(t, time.Since(asked), 8*time.Second)

		outage.end()
		require.Eventually(t, func() bool {
			code, _ := p.readyz()
			return code == 200 && strings.Count(p.stderr.String(), "answers again, after") == i+1
		}, patience, 50*time.Millisecond)
		require.NoError(t, create(fmt.Sprint("after-", i)))
	}
}

// TestFullDisk: the last lines of a program whose disk is full say so, and where; so do those of
// its next start.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=140m"); err != nil {
		t.Skip("a small disk takes the right to mount: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, 0)) })
	data := filepath.Join(disk, "data")
	p := launch(t, "--data", data, "--resource", "configmaps")
	fill, err := os.Create(filepath.Join(disk, "fill"))
	require.NoError(t, err)
	_, err = io.Copy(fill, zeros{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, fill.Close())

	text := map[string]string{"text": strings.Repeat("x", 500<<10)}
	for i := 0; err != nil && i < 100; i++ {
		_, failed := p.client().CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c-", i)}, Data: text,
		}, metav1.CreateOptions{})
		if failed != nil {
			err = nil
		}
	}
	require.NoError(t, err, "the disk has room for everything")
	require.Error(t, p.process.Wait())
	require.Equal(t, exitFailed, p.process.ProcessState.ExitCode())
	says := fmt.Sprintf("the disk of --data %s is full", data)
	require.Contains(t, p.stderr.String(), says)

	again := exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--data", data)
	again.Env = append(os.Environ(), asProgram+"=1")
	out, err := again.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), says)
	require.Contains(t, string(out), "free some space there, then start again")
}

// zeros is a text without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
