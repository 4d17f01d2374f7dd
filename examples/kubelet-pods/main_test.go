package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tributary-go/tributary/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared is a writer that may be read while it is written.
type shared struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// start runs the program beside the test; stop is a Ctrl-C and returns the exit code.
func start(t *testing.T, beat time.Duration, args ...string) (stdout, stderr *shared, stop func() int) {
	stdout, stderr = &shared{}, &shared{}
	o, err := parse(args, stderr)
	require.NoError(t, err)
	o.beat = beat
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, o, stdout, stderr) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stdout, stderr, stop
}

// eventually waits for something that real files, sockets and processes bring about.
func eventually(t *testing.T, condition func() bool, what func() string) {
	t.Helper()
	if !assertEventually(condition) {
		t.Fatal(what())
	}
}

func assertEventually(condition func() bool) bool {
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

// TestStoryShowsEverything: the embedded default shows every operation of every source, as one JSON
// object per line.
func TestStoryShowsEverything(t *testing.T) {
	stdout, stderr, stop := start(t, 150*time.Millisecond, "--node", "Node-1", "--output", "json")
	missing := func() (all []string) {
		seen := map[string]bool{}
		for line := range strings.Lines(stdout.String()) {
			var u sources.PodUpdate
			if !strings.HasSuffix(line, "\n") {
				continue
			}
			require.NoError(t, json.Unmarshal([]byte(line), &u), line)
			seen[string(u.Op)+" "+u.Source] = true
		}
		for _, op := range []sources.Op{sources.Add, sources.Update, sources.Delete, sources.Remove, sources.Reconcile} {
			for _, source := range []string{sources.APISource, sources.FileSource, sources.HTTPSource} {
				if !seen[string(op)+" "+source] {
					all = append(all, string(op)+" "+source)
				}
			}
		}
		return all
	}
	eventually(t, func() bool { return len(missing()) == 0 }, func() string {
		return "never seen: " + strings.Join(missing(), ", ") + "\n" + stderr.String()
	})
	require.Equal(t, exitOK, stop())
	folder := regexp.MustCompile(`edit: +(\S+)`).FindStringSubmatch(stderr.String())
	require.Len(t, folder, 2)
	require.NoDirExists(t, folder[1])
}

// TestKubectlSeesAndChangesTheStory points kubectl at the embedded server.
func TestKubectlSeesAndChangesTheStory(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed (Debian: kubernetes-client)")
	}
	stdout, stderr, stop := start(t, time.Hour, "--node", "node-1")
	server := regexp.MustCompile(`kubectl -s (\S+) get`)
	eventually(t, func() bool { return server.MatchString(stderr.String()) }, stderr.String)
	kubectl := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "kubectl", append([]string{"-s", server.FindStringSubmatch(stderr.String())[1]}, args...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Equal(t, 4, strings.Count(kubectl("get", "pods", "-A"), "\n"), "a heading and three pods")
	require.Regexp(t, `dns +1/1 +Running|dns +\d/\d +Running`, kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=node-1"))
	require.NotContains(t, kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=node-1"), "web-0")
	require.Contains(t, kubectl("get", "pods", "-A", "-l", "app=web-0"), "web-0")
	kubectl("delete", "pod", "-n", "kube-system", "dns", "--force", "--grace-period=0")
	eventually(t, func() bool { return regexp.MustCompile(`REMOVE +api +kube-system/dns`).MatchString(stdout.String()) }, stdout.String)
	require.Equal(t, exitOK, stop())
}

// TestRealSourcesTurnTheStoryOff watches a folder and a URL that the flags name.
func TestRealSourcesTurnTheStoryOff(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(staticPod("a", "", "image:1", "")), 0o600))
	var got string
	server := httptest.NewServer(handler(func(header string) { got = header }))
	defer server.Close()
	stdout, stderr, stop := start(t, time.Hour, "--node", "node-1", "--manifests", folder,
		"--manifest-url", server.URL, "--manifest-url-header", "Authorization: Bearer hunter2", "-v", "2")
	eventually(t, func() bool { return strings.Count(stdout.String(), "\n") == 2 }, stdout.String)
	require.Regexp(t, `(?m)ADD +file kube-system/a-node-1 +new, Pending, image:1$`, stdout.String())
	require.Regexp(t, `(?m)ADD +http - +the source has been read and has no pods$`, stdout.String())
	require.Equal(t, "Bearer hunter2", got)
	require.Equal(t, exitOK, stop())
	require.NotContains(t, stderr.String(), "hunter2")
	require.NotContains(t, stderr.String(), "#", "no story")
}

// TestAPathThatIsNotThere: both streams say the same of it, in both modes.
func TestAPathThatIsNotThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, flags := range [][]string{nil, {"--like-kubelet"}} {
		stdout, stderr, stop := start(t, time.Hour, append(flags, "--node", "node-1", "--manifests", missing)...)
		eventually(t, func() bool { return strings.Contains(stdout.String(), "\n") }, stderr.String)
		require.Equal(t, exitOK, stop())
		require.Regexp(t, `^\S+ +ADD +file - +no pod is known: `+missing+` is not there: check the path`, stdout.String())
		require.NotContains(t, stdout.String(), "has been read")
		require.Contains(t, stderr.String(), missing+" is not there: check the path")
	}
}

// TestLikeKubelet has a folder with a pod and a backup of it: to the kubelet that is a manifest
// like any other. The health of each source is in the log.
func TestLikeKubelet(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(staticPod("a", "", "image:1", "")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.yaml.bak"), []byte(staticPod("b", "", "image:1", "")), 0o600))
	for _, row := range []struct {
		flags  []string
		added  []string
		status string
	}{
		{nil, []string{"a"}, `"skipped"=1 "safeToPrune"=true`},
		{[]string{"--like-kubelet"}, []string{"a", "b"}, `"skipped"=0 "safeToPrune"=true`},
	} {
		t.Run(strings.Join(row.flags, " "), func(t *testing.T) {
			t.Parallel()
			stdout, stderr, stop := start(t, time.Hour, append(row.flags, "--node", "node-1", "--manifests", folder, "-v", "2")...)
			eventually(t, func() bool { return strings.Contains(stderr.String(), `"msg"="Status"`) }, stderr.String)
			require.Equal(t, exitOK, stop())
			require.Equal(t, len(row.added), strings.Count(stdout.String(), "\n"), stdout.String())
			for _, name := range row.added {
				require.Regexp(t, `(?m)ADD +file kube-system/`+name+`-node-1 +new, Pending, image:1$`, stdout.String())
			}
			require.Regexp(t, `"msg"="Status" "source"="file" "seen"=true "pods"=`+strconv.Itoa(len(row.added)), stderr.String())
			require.Contains(t, stderr.String(), row.status)
		})
	}
}

func TestBadFlags(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(broken, []byte("clusters: hunter2"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--output", "xml"}, `--output "xml": give text or json`},
		{[]string{"--kubeconfig", "/does/not/exist"}, "--kubeconfig /does/not/exist cannot be used"},
		{[]string{"--kubeconfig", broken}, "cannot be used"},
		{[]string{"--manifest-url", "ftp://user:hunter2@host/"}, "--manifest-url: give an absolute http or https URL"},
		{[]string{"--manifest-url", "http://user:hunter2@[broken/"}, "--manifest-url: give an absolute http or https URL"},
		{[]string{"--manifest-url", ""}, "--manifest-url: give"},
		{[]string{"--manifest-url-header", "nothing", "--manifest-url", "http://x"}, "want NAME:VALUE"},
		{[]string{"--manifest-url-header", "a:b"}, "needs --manifest-url"},
		{[]string{"--node", "a b"}, `--node "a b" cannot be the name of a node`},
		{[]string{"--file-check-frequency", "0s"}, "must be positive"},
		{[]string{"--for", "-1s"}, "must not be negative"},
		{[]string{"--bogus"}, "-bogus"},
		{[]string{"extra"}, `unexpected argument "extra"`},
	} {
		var stderr bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), c.args, io.Discard, &stderr), "%v", c.args)
		require.Contains(t, stderr.String(), c.want)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %q", stderr.String())
		require.NotContains(t, stderr.String(), "hunter2")
	}
}

func TestHelp(t *testing.T) {
	var stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "-manifest-url-header NAME:VALUE")
}

// handler answers an empty PodList and shows the Authorization header of each request.
func handler(seen func(authorization string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "PodList", "items": []}`)
	})
}

// TestStatus: the page shows the sources of the story.
func TestStatus(t *testing.T) {
	_, stderr, stop := start(t, time.Millisecond, "--node", "node-1", "--status", "127.0.0.1:0")
	var url string
	require.Eventually(t, func() bool {
		found := regexp.MustCompile(`# status: (http://\S+)`).FindStringSubmatch(stderr.String())
		if found != nil {
			url = found[1]
		}
		return found != nil
	}, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		response, err := http.Get(url)
		require.NoError(t, err)
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^synced +node-1/api +source`).Match(page)
	}, 20*time.Second, 10*time.Millisecond)
	http.DefaultClient.CloseIdleConnections()
	require.Equal(t, exitOK, stop())
	_, stderr, stop = start(t, time.Millisecond, "--node", "node-1", "--status", "no address")
	require.Equal(t, exitFailed, stop())
	require.Regexp(t, `^kubelet-pods: --status: listen tcp[^\n]*\n$`, stderr.String(), "one line, and no story")
}
