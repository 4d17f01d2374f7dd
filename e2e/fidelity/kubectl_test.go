package fidelity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// session is a group of commands that run one after the other.
type session struct {
	title    string
	commands []*command
}

// command is one line of the list.
type command struct {
	line string
	// output and exit say why the outputs or the exit codes differ; empty if they must not.
	output, exit string
}

func readSessions(t testing.TB, file string) (sessions []*session) {
	t.Helper()
	for _, e := range readEntries(t, file) {
		if len(sessions) == 0 || sessions[len(sessions)-1].title != e.section {
			sessions = append(sessions, &session{title: e.section})
		}
		s := sessions[len(sessions)-1]
		if !strings.HasPrefix(e.text, "  !") {
			s.commands = append(s.commands, &command{line: e.text})
			continue
		}
		require.NotEmpty(t, s.commands, "%s: a reason without a command", e.where)
		last := s.commands[len(s.commands)-1]
		if reason, ok := strings.CutPrefix(e.text, "  !! "); ok {
			last.exit = reason
		} else {
			last.output = strings.TrimPrefix(e.text, "  ! ")
		}
	}
	return sessions
}

// TestKubectlSeesNoDifference runs every command of the list against both servers, with the kubectl
// of the API server's release.
func TestKubectlSeesNoDifference(t *testing.T) {
	compareCommands(t, "kubectl.txt", startReal(t), startOurs(t))
}

// TestDefinitionsSeeNoDifference does so for definitions of custom resources, which come, change
// and leave, on the API server and on `tributary serve`.
func TestDefinitionsSeeNoDifference(t *testing.T) {
	compareCommands(t, "definitions.txt", startReal(t), startProgram(t))
}

func compareCommands(t *testing.T, file string, sides ...*side) {
	binary := cluster.Kubectl(t)
	t.Run("commands", func(t *testing.T) {
		for i, s := range readSessions(t, file) {
			t.Run(s.title, func(t *testing.T) {
				t.Parallel()
				namespace := fmt.Sprintf("commands-%d", i)
				var terminals []*terminal
				for _, side := range sides {
					side.makeNamespace(t, namespace)
					terminal := newTerminal(t, binary, side, namespace)
					terminals = append(terminals, terminal)
					code, out := terminal.run(t, `sed "s/NAMESPACE/$NS/" state.yaml | kubectl create -f -`)
					require.Zero(t, code, "%s: the start state:\n%s", side.name, out)
				}
				for _, c := range s.commands {
					t.Run(c.line, func(t *testing.T) { c.compare(t, terminals[0], terminals[1]) })
				}
			})
		}
	})
}

// passing is an event that kube-apiserver writes now and then: its controller of addresses has seen
// a new service before the service's address.
const passing = "ClusterIPNotAllocated"

func (c *command) compare(t *testing.T, theirs, ours *terminal) {
	var wantCode, gotCode int
	var want, got string
	var both sync.WaitGroup
	both.Go(func() { wantCode, want = theirs.run(t, c.line) })
	both.Go(func() { gotCode, got = ours.run(t, c.line) })
	both.Wait()
	for strings.Contains(want, passing) {
		theirs.run(t, "kubectl delete events --field-selector reason="+passing)
		wantCode, want = theirs.run(t, c.line)
	}
	if c.exit != "" {
		require.NotEqual(t, wantCode, gotCode, "the exit codes agree: remove the reason (%s)", c.exit)
		return
	}
	require.Equal(t, wantCode, gotCode, "the API server: %s\nours: %s", want, got)
	if c.output != "" {
		require.NotEqual(t, want, got, "the outputs agree: remove the reason (%s)", c.output)
		return
	}
	require.Equal(t, want, got)
}

// terminal is a shell whose kubectl talks to one server.
type terminal struct {
	environment []string
	server      string
}

func newTerminal(t testing.TB, kubectl string, s *side, namespace string) *terminal {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.Symlink(kubectl, filepath.Join(home, "kubectl")))
	const name = "table"
	document, err := json.Marshal(clientcmd.Config{ // JSON is YAML
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server: s.url, CertificateAuthorityData: s.authority,
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{Token: s.token}}},
		Contexts: []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{
			Cluster: name, AuthInfo: name, Namespace: namespace,
		}}},
	})
	require.NoError(t, err)
	config := filepath.Join(home, "kubeconfig")
	require.NoError(t, os.WriteFile(config, document, 0o600))
	return &terminal{server: s.url, environment: []string{
		"HOME=" + home, "KUBECONFIG=" + config, "NS=" + namespace, "TMPDIR=" + home,
		"PATH=" + home + string(os.PathListSeparator) + os.Getenv("PATH"),
	}}
}

// run returns the exit code of a command, and its output without what must differ.
func (s *terminal) run(t testing.TB, line string) (code int, output string) {
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir, c.Env = filepath.Join("testdata", "kubectl"), s.environment
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Errorf("%s: %v", line, err)
	}
	text := strings.ReplaceAll(out.String(), s.server, "SERVER")
	for _, v := range varyingText {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return c.ProcessState.ExitCode(), text
}

// varyingText is what differs from server to server.
var varyingText = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [-+]\d{4}`), "TIME"},
	{regexp.MustCompile(`[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+`), "LOG"},
	{regexp.MustCompile(`("?resourceVersion"?: ?"?|resourceVersion=|Resource Version: +)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`10\.0\.0\.\d+`), "ADDRESS"},
	// A manager is named after its file.
	{regexp.MustCompile(`kube-apiserver-v[-\w.]+`), "kube-apiserver"},
	{regexp.MustCompile(`debugger-[a-z0-9]{5}`), "debugger-NAME"},
	{regexp.MustCompile(`/tmp/\S+`), "FILE"},
	{regexp.MustCompile(`\b\d+(h\d+m|m\d+s|[smhd])\b`), "AGE"},
	{regexp.MustCompile(`(?m)[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}
