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
	// output and exit say for a server why its output or exit code differs; those that are not here
	// must not differ.
	output, exit reasons
}

// reasons are those of differences, by the name of the server.
type reasons map[string]string

// The servers that are compared with the real one, as the lists name them.
const (
	theFake  = "fake"
	theServe = "serve"
)

// reasonLine is a reason for the command above, for one server or for all.
var reasonLine = regexp.MustCompile(`^  (!!?)(fake|serve)? (.+)$`)

func readSessions(t testing.TB, file string) (sessions []*session) {
	t.Helper()
	for _, e := range readEntries(t, file) {
		if len(sessions) == 0 || sessions[len(sessions)-1].title != e.section {
			sessions = append(sessions, &session{title: e.section})
		}
		s := sessions[len(sessions)-1]
		if !strings.HasPrefix(e.text, "  !") {
			s.commands = append(s.commands, &command{line: e.text, output: reasons{theRelay: relayDifferences[e.text]}, exit: reasons{}})
			continue
		}
		require.NotEmpty(t, s.commands, "%s: a reason without a command", e.where)
		parts := reasonLine.FindStringSubmatch(e.text)
		require.NotNil(t, parts, "%s: %q is no reason", e.where, e.text)
		of := s.commands[len(s.commands)-1].output
		if parts[1] == "!!" {
			of = s.commands[len(s.commands)-1].exit
		}
		for _, server := range []string{theFake, theServe} {
			if parts[2] == "" || parts[2] == server {
				of[server] = parts[3]
			}
		}
	}
	return sessions
}

// TestKubectlSeesNoDifference runs every command of the list against the API server, the fake and
// `tributary serve`, with the kubectl of the API server's release.
func TestKubectlSeesNoDifference(t *testing.T) {
	compareCommands(t, "kubectl.txt", startReal(t), startOurs(t), startProgram(t))
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
					start := terminal.run(t, `sed "s/NAMESPACE/$NS/" state.yaml | kubectl create -f -`)
					require.Zero(t, start.code, "%s: the start state:\n%s", side.name, start.output)
				}
				for _, c := range s.commands {
					t.Run(c.line, func(t *testing.T) { c.compare(t, terminals[0], terminals[1:]) })
				}
			})
		}
	})
}

// passing is an event that kube-apiserver writes now and then: its controller of addresses has seen
// a new service before the service's address.
const passing = "ClusterIPNotAllocated"

func (c *command) compare(t *testing.T, theirs *terminal, ours []*terminal) {
	var want outcome
	got := make([]outcome, len(ours))
	var all sync.WaitGroup
	all.Go(func() { want = theirs.run(t, c.line) })
	for i, terminal := range ours {
		all.Go(func() { got[i] = terminal.run(t, c.line) })
	}
	all.Wait()
	for strings.Contains(want.output, passing) {
		theirs.run(t, "kubectl delete events --field-selector reason="+passing)
		want = theirs.run(t, c.line)
	}
	for i, terminal := range ours {
		t.Run(terminal.name, func(t *testing.T) { c.judge(t, terminal.name, want, got[i]) })
	}
}

func (c *command) judge(t *testing.T, server string, want, got outcome) {
	if server == theRelay && relayLags[c.line] {
		return
	}
	if reason := c.exit[server]; reason != "" {
		require.NotEqual(t, want.code, got.code, "the exit codes agree: remove the reason (%s)", reason)
		return
	}
	require.Equal(t, want.code, got.code, "the API server: %s\nours: %s", want.output, got.output)
	if reason := c.output[server]; reason != "" {
		require.NotEqual(t, want.output, got.output, "the outputs agree: remove the reason (%s)", reason)
		return
	}
	require.Equal(t, want.output, got.output)
}

// outcome is the exit code of a command, and its output without what must differ.
type outcome struct {
	code   int
	output string
}

// terminal is a shell whose kubectl talks to one server.
type terminal struct {
	name        string // of the server
	environment []string
	server      string // its URL
}

func newTerminal(t testing.TB, kubectl string, s *side, namespace string) *terminal {
	t.Helper()
	home := t.TempDir()
	if kubectl != "" {
		require.NoError(t, os.Symlink(kubectl, filepath.Join(home, "kubectl")))
	}
	config := s.kubeconfig
	if config == "" {
		config = filepath.Join(home, "kubeconfig")
		s.writeKubeconfig(t, config, namespace)
	}
	return &terminal{name: s.name, server: s.url, environment: []string{
		"HOME=" + home, "KUBECONFIG=" + config, "NS=" + namespace, "TMPDIR=" + home,
		"PATH=" + home + string(os.PathListSeparator) + os.Getenv("PATH"),
	}}
}

func (s *side) writeKubeconfig(t testing.TB, path, namespace string) {
	t.Helper()
	const name = "table"
	document, err := json.Marshal(clientcmd.Config{ // JSON is YAML
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server: s.url, CertificateAuthorityData: s.authority,
			InsecureSkipTLSVerify: s.authority == nil, // the JavaScript client wants it for HTTP
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{Token: s.token}}},
		Contexts: []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{
			Cluster: name, AuthInfo: name, Namespace: namespace,
		}}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, document, 0o600))
}

func (s *terminal) run(t testing.TB, line string) outcome {
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir, c.Env = filepath.Join("testdata", "kubectl"), s.environment
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Errorf("%s: %v", line, err)
	}
	return outcome{c.ProcessState.ExitCode(), s.normal(out.String())}
}

// normal is an output without what must differ.
func (s *terminal) normal(text string) string {
	text = strings.ReplaceAll(text, s.server, "SERVER")
	for _, v := range varyingText {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text
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
