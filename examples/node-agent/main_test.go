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

// told is the lines of the story, with what each is joined with.
var told = map[string]record{
	"started":                  {},
	"GET /":                    {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web"}},
	"labelled":                 {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"last before the rotation": {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"first after the rotation": {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"behind half a manifest":   {Pod: "etcd-node-1", Labels: map[string]string{"tier": "control-plane"}},
	"without an API server":    {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"restarted, and reading its configuration": {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"cut":     {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
	"goodbye": {Pod: "web-5d9c7b6f8-x2x4k", Workload: "Deployment/web", Labels: map[string]string{"app": "web", "track": "canary"}},
}

// TestStory: each line of the story comes out once, joined with its pod, workload and labels.
func TestStory(t *testing.T) {
	o, err := parse([]string{"--node", "node-1"}, io.Discard)
	require.NoError(t, err)
	o.beat = 150 * time.Millisecond
	lines, end := play(t, o, io.Discard)
	missing := map[string]bool{}
	for log := range told {
		missing[log] = true
	}
	for begun := 0; len(missing) > 0; {
		require.True(t, lines.Scan(), "the program has ended without %v", missing)
		var got record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &got))
		require.NotEmpty(t, got.Time)
		if got.Log == "started" { // once in each of two logs, when the owner may not be known yet
			begun++
			missing[got.Log] = begun < 2
			if begun == 2 {
				delete(missing, got.Log)
			}
			continue
		}
		require.True(t, missing[got.Log], "%s was told twice", got.Log)
		delete(missing, got.Log)
		want := told[got.Log]
		require.Equal(t, want, record{Pod: got.Pod, Workload: got.Workload, Labels: got.Labels}, got.Log)
	}
	end()
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
	read := func(lines *bufio.Scanner, want ...string) {
		t.Helper()
		var got []string
		for range want {
			require.True(t, lines.Scan())
			var r record
			require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
			got = append(got, r.Log+" "+r.Workload)
		}
		require.ElementsMatch(t, want, got)
	}
	for range 2 {
		require.True(t, first.Scan())
	}
	require.Eventually(t, func() bool { // the owner is in its checkpoint
		found, err := filepath.Glob(filepath.Join(o.state, "*.owners"))
		return err == nil && len(found) == 1
	}, 30*time.Second, 10*time.Millisecond)
	end()
	s.away()
	s.write(s.web, "0.log", "while nobody reads")
	second, end := play(t, o, io.Discard)
	read(second, "while nobody reads Deployment/web")
	s.write(s.etcd, "0.log", "more")
	read(second, "more ")
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
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.pods.Run(ctx) }()
	go func() {
		for range a.pods.Updates() {
		}
	}()
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
	cancel()
	require.NoError(t, <-ended)
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
