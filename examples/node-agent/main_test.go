package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// told is the lines of the story, with the pod, workload and labels that each is joined with.
var told = []record{
	web("started", stable), {Log: "started", Pod: "etcd-node-1", Labels: etcd},
	web("GET /", stable), web("labelled", canary),
	web("last before the rotation", canary), web("first after the rotation", canary),
	{Log: "behind half a manifest", Pod: "etcd-node-1", Labels: etcd},
	web("without an API server", canary), web("restarted, and reading its configuration", canary),
	web("cut", canary), web("goodbye", canary),
}

var (
	etcd   = map[string]string{"tier": "control-plane"}
	stable = map[string]string{"app": "web", "pod-template-hash": "5d9c7b6f8"}
	canary = map[string]string{"app": "web", "pod-template-hash": "5d9c7b6f8", "track": "canary"}
)

func web(log string, labels map[string]string) record {
	return record{Log: log, Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: labels}
}

// read reads the next line. It keeps what told has of a line.
func read(t *testing.T, lines *bufio.Scanner) record {
	t.Helper()
	require.True(t, lines.Scan(), "the program has ended")
	var got record
	require.NoError(t, json.Unmarshal(lines.Bytes(), &got))
	require.NotEmpty(t, got.Time)
	return record{Log: got.Log, Pod: got.Pod, Workload: got.Workload, Guess: got.Guess, Labels: got.Labels}
}

// TestStory: each line of the story comes out once, joined with its pod, workload and labels.
func TestStory(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	o.beat = 150 * time.Millisecond
	lines, end := play(t, o, io.Discard)
	var got []record
	for range told {
		got = append(got, read(t, lines))
	}
	require.ElementsMatch(t, told, got)
	end()
}

// TestLinesWaitForTheirWorkload: the lines of a new pod are told once the API server has named its
// workload. If it does not answer, they are told with a guess, once their patience has ended.
func TestLinesWaitForTheirWorkload(t *testing.T) {
	guessed := web("started", stable)
	guessed.Workload, guessed.Guess = "", "Deployment/web"
	for name, c := range map[string]struct {
		patience time.Duration
		answers  bool
		want     record
	}{
		"an API server that is slow":    {time.Hour, true, told[0]},
		"one that does not answer ever": {100 * time.Millisecond, false, guessed},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse([]string{"--node", "node-1"}, io.Discard)
			require.NoError(t, err)
			s, err := startStory(&o, io.Discard)
			require.NoError(t, err)
			defer s.stop()
			answer := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/replicasets/") {
					select {
					case <-answer:
					case <-r.Context().Done():
					}
				}
				s.api.ServeHTTP(w, r)
			}))
			defer server.Close()
			o.config.Host, o.patience = server.URL, c.patience
			lines, end := play(t, o, io.Discard)
			defer end()
			got := []record{read(t, lines)}
			if c.answers {
				close(answer)
			}
			require.ElementsMatch(t, []record{c.want, told[1]}, append(got, read(t, lines)))
		})
	}
}

// play runs the program. end ends it, and waits for that.
func play(t *testing.T, o options, stderr io.Writer) (lines *bufio.Scanner, end func()) {
	t.Helper()
	stdout, out := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() {
		ended <- execute(ctx, o, out, stderr)
		_ = out.Close()
	}()
	return bufio.NewScanner(stdout), func() {
		cancel()
		_, err := io.Copy(io.Discard, stdout)
		require.NoError(t, err)
		require.NoError(t, <-ended)
	}
}

// TestRestart: a second run goes on where the first one has ended, while the API server is away.
func TestRestart(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	o.state = t.TempDir()
	s, err := startStory(&o, io.Discard)
	require.NoError(t, err)
	defer s.stop()
	first, end := play(t, o, io.Discard)
	require.ElementsMatch(t, told[:2], []record{read(t, first), read(t, first)})
	require.Eventually(t, func() bool { // the owner is in its checkpoint
		found, err := filepath.Glob(filepath.Join(o.state, "*.owners"))
		return err == nil && len(found) == 1
	}, 30*time.Second, 10*time.Millisecond)
	end()
	s.away()
	s.write(s.web, "0.log", "while nobody reads")
	second, end := play(t, o, io.Discard)
	require.Equal(t, web("while nobody reads", stable), read(t, second))
	s.write(s.etcd, "0.log", "more")
	require.Equal(t, "more", read(t, second).Log)
	end()
}

// TestEndpoints: the probe, every metric that the alerts use, and the page.
func TestEndpoints(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	s, err := startStory(&o, io.Discard)
	require.NoError(t, err)
	defer s.stop()
	a, err := newAgent(o, logr.Discard(), io.Discard)
	require.NoError(t, err)
	get := func(path string) (code int, body string) {
		w := httptest.NewRecorder()
		a.endpoints.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, _ := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code, "nothing has been read")
	defer start(t, a)()
	<-a.pods.Synced()
	code, body := get("/readyz")
	require.Equal(t, http.StatusOK, code, body)
	_, page := get("/statusz")
	require.Contains(t, page, "node-1")
	s.away()
	require.Eventually(t, func() bool {
		_, body = get("/metrics")
		return strings.Contains(body, "tributary_sources_problems{")
	}, 30*time.Second, 10*time.Millisecond)
	rules, err := os.ReadFile("deploy/prometheus/alerts.yaml")
	require.NoError(t, err)
	names := regexp.MustCompile(`\b(tributary|node_agent)_\w+`).FindAllString(string(rules), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Contains(t, body, name)
	}
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`unexpected argument "now"`: {"now"},
		"-logs":                     {"--logs"},
		"--kubeconfig":              {"--kubeconfig", filepath.Join(t.TempDir(), "none")},
	} {
		var stderr strings.Builder
		require.Equal(t, exitUsage, run(t.Context(), args, io.Discard, &stderr))
		require.Contains(t, stderr.String(), want)
	}
	var stderr strings.Builder
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "-manifests")
	require.Equal(t, exitFailed, run(t.Context(), []string{"--listen", "nowhere:at:all"}, io.Discard, io.Discard))
}

// TestTheNodeIsNamed: in a cluster the agent follows the node that is named, and no other. Without
// a name it ends, and says which lines of the manifest are missing.
func TestTheNodeIsNamed(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "node-1", o.node, "the node of the story")

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"+
		"clusters: [{name: c, cluster: {server: 'http://localhost:1'}}]\n"+
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600))
	for _, args := range [][]string{{"--kubeconfig", kubeconfig}, {"--kubeconfig", kubeconfig, "--node=$(NODE_NAME)"}} {
		var stderr strings.Builder
		require.Equal(t, exitUsage, run(t.Context(), args, io.Discard, &stderr), "%s", args)
		require.Contains(t, stderr.String(), "fieldPath: spec.nodeName")
	}
	t.Setenv("NODE_NAME", "node-7")
	o, err = parse([]string{"--kubeconfig", kubeconfig}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "node-7", o.node)
	o, err = parse([]string{"--kubeconfig", kubeconfig, "--node", "node-8"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "node-8", o.node)
}

// TestAWrongNode: the agent is not ready, and says that there is no such Node.
func TestAWrongNode(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	s, err := startStory(&o, io.Discard)
	require.NoError(t, err)
	defer s.stop()
	o.node = "node-2"
	a, err := newAgent(o, logr.Discard(), io.Discard)
	require.NoError(t, err)
	defer start(t, a)()
	<-a.pods.Synced()
	w := httptest.NewRecorder()
	a.endpoints.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), `no Node "node-2"`)
}

// TestLogsThatAreMissing: the agent ends, and names the folder.
func TestLogsThatAreMissing(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	s, err := startStory(&o, io.Discard)
	require.NoError(t, err)
	defer s.stop()
	o.logs = filepath.Join(t.TempDir(), "none")
	require.ErrorContains(t, execute(t.Context(), o, io.Discard, io.Discard), o.logs)
}
