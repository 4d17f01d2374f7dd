package fidelity_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// foreignClient is a client library of another language, and its script, which prints a line for
// each step.
type foreignClient struct {
	name, script string
	// command prepares the script in a folder of its own, or skips the test.
	command func(t *testing.T, script, folder string) []string
}

var foreignClients = []foreignClient{
	{"python3-kubernetes", "python.py", withPython},
	{"client-node", "javascript.mjs", withNode},
}

const (
	noKubelet  = "Nodes have no kubelets: nothing runs, and nothing is logged."
	noDefaults = "Of the built-in kinds, pods alone are validated and get defaults beyond their metadata."
)

// clientDifferences say why a step differs on the fake and on `tributary serve`. All other steps
// must not differ.
var clientDifferences = map[string]string{
	"custom resource unknown": "A path of no resource is answered with a Status; kube-apiserver answers with a line of text.",
	"exec":                    noKubelet,
	"logs":                    noKubelet,
	"logs of no container":    noKubelet,
	"logs, streamed":          noKubelet,
	"object create":           noDefaults,
	"patch that is invalid":   noDefaults,
	"resources":               "The old bindings of a namespace are not served; those of a pod are. Old component statuses are not.",
}

// stepLine is the beginning of a step in a script.
var stepLine = regexp.MustCompile(`(?m)^(?:await )?step\(['"](.+?)['"],`)

func (c foreignClient) path() string { return filepath.Join("testdata", "clients", c.script) }

// steps are the names of a script's steps.
func (c foreignClient) steps(t testing.TB) (names []string) {
	t.Helper()
	text, err := os.ReadFile(c.path())
	require.NoError(t, err)
	for _, found := range stepLine.FindAllStringSubmatch(string(text), -1) {
		names = append(names, found[1])
	}
	return names
}

// TestForeignClients runs the scripts on the API server, on the fake over HTTP and on `tributary
// serve` as it starts by default: with the token and the authority of its own kubeconfig.
func TestForeignClients(t *testing.T) {
	theirs, ours := startReal(t), []*side{startOurs(t), startByDefault(t)}
	t.Run("clients", func(t *testing.T) {
		for _, c := range foreignClients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.compare(t, theirs, ours)
			})
		}
	})
}

func (c foreignClient) compare(t *testing.T, theirs *side, ours []*side) {
	command := c.command(t, c.path(), t.TempDir())
	sides := append([]*side{theirs}, ours...)
	said := make([]map[string]string, len(sides))
	var all sync.WaitGroup
	for i, s := range sides {
		s.makeNamespace(t, c.name)
		terminal := newTerminal(t, "", s, c.name)
		all.Go(func() { said[i] = terminal.script(t, command) })
	}
	all.Wait()
	require.False(t, t.Failed())
	for i, s := range sides {
		require.ElementsMatch(t, c.steps(t), slices.Collect(maps.Keys(said[i])), s.name)
	}
	for i, s := range ours {
		for step, want := range said[0] {
			t.Run(s.name+"/"+step, func(t *testing.T) {
				if reason := clientDifferences[step]; reason != "" && s.name != theRelay {
					require.NotEqual(t, want, said[i+1][step], "the lines agree: remove the reason (%s)", reason)
					return
				}
				require.Equal(t, want, said[i+1][step])
			})
		}
	}
}

// script runs a client's script, and returns its lines by the names of their steps.
func (s *terminal) script(t *testing.T, command []string) map[string]string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = s.environment
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		t.Errorf("%s: %v\n%s%s", s.name, err, &out, &problems)
	}
	steps := map[string]string{}
	for line := range strings.Lines(s.normal(out.String())) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		steps[name] = said
	}
	return steps
}

func withPython(t *testing.T, script, _ string) []string {
	const python = "/usr/bin/python3" // Debian's packages are for this one
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import kubernetes").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: there is no python3-kubernetes: %v\n%s", err, out)
	}
	return []string{python, "-W", "ignore", script}
}

// nodeClient is the last release of the JavaScript client for Node 20.
const nodeClient = "@kubernetes/client-node@1.4.0"

// withNode installs the client once, beside the servers' binaries. Node finds a module in the
// folders above the script alone.
func withNode(t *testing.T, script, folder string) []string {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: there is no node")
	}
	said, err := exec.CommandContext(t.Context(), node, "-p", "process.versions.node.split('.')[0]").Output()
	require.NoError(t, err)
	if release, err := strconv.Atoi(strings.TrimSpace(string(said))); err != nil || release < 20 {
		t.Skipf("SKIPPED: there is no node 20: this is %s", said)
	}
	modules := cluster.Cached(t, strings.ReplaceAll(strings.TrimPrefix(nodeClient, "@"), "/", "-"), func(into string) error {
		install := exec.CommandContext(t.Context(), "npm", "install", "--prefix", into,
			"--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", nodeClient)
		if out, err := install.CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: there is no %s: %v\n%s", nodeClient, err, out)
		}
		return nil
	})
	require.NoError(t, os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(folder, "node_modules")))
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	copied := filepath.Join(folder, filepath.Base(script))
	require.NoError(t, os.WriteFile(copied, text, 0o600))
	return []string{node, copied}
}

// startByDefault is `tributary serve` as a person starts it. Clients have the kubeconfig that it
// writes.
func startByDefault(t *testing.T) *side {
	t.Helper()
	binary, err := cluster.BuildTributary(t.TempDir())
	require.NoError(t, err)
	access := filepath.Join(t.TempDir(), "access")
	process := cluster.NewProcess(t, "tributary", binary, []string{
		"serve", "--listen", cluster.FreeAddress(t), "--data", filepath.Join(t.TempDir(), "data"), "--access", access,
	})
	process.Start()
	var config *rest.Config
	s := &side{name: theServe, kubeconfig: filepath.Join(access, "kubeconfig")}
	require.Eventually(t, func() bool {
		config, err = clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		return err == nil || process.HasEnded()
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, err)
	define(t, config)
	s.url, s.token = config.Host, config.BearerToken
	s.client, err = rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}
