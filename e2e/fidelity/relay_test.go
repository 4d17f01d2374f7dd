package fidelity_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// theRelay is the name of `tributary relay` before an API server.
const theRelay = "relay"

// relayDifferences say why the output of a command differs through a relay. All others must not.
var relayDifferences = map[string]string{
	"kubectl get --raw /api":                       "The document has the address of the API server, and each side has its own.",
	"kubectl apply -f two.yaml --prune -l set=two": "A list out of a copy has no warning that its kind is deprecated.",
}

// relayLags has the commands in which a relay may be late. After a definition has changed, the API
// server reads other content under an equal version, of which no watch tells. While a version
// vanishes, a 503 may come before the 404.
var relayLags = map[string]bool{
	"kubectl get shirts.v1.example.com a -o yaml": true,
	`while kubectl get --raw "/apis/example.com/v1/namespaces/$NS/shirts" >/dev/null 2>&1; do sleep 0.2; done; kubectl get --raw "/apis/example.com/v1/namespaces/$NS/shirts" 2>&1 | grep -o NotFound`: true,
	`while kubectl get --raw "/apis/example.com/v2/namespaces/$NS/shirts" >/dev/null 2>&1; do sleep 0.2; done; kubectl get --raw "/apis/example.com/v2/namespaces/$NS/shirts" 2>&1 | grep -o NotFound`: true,
}

// startRelay is `tributary relay` before an API server of its own. It reads under a credential with
// the rights of a relay, and its clients bring theirs.
func startRelay(t testing.TB) *side {
	t.Helper()
	binary, err := cluster.BuildTributary(t.TempDir())
	require.NoError(t, err)
	c := cluster.Start(t)
	c.AllowRelay()
	define(t, c.Server.Config(cluster.Admin))
	config := c.StartRelay(binary, c.Server.Config(cluster.Agent), "--data="+t.TempDir()).Config(cluster.Admin)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return &side{name: theRelay, url: config.Host, token: cluster.Admin, client: client, authority: config.CAData}
}

// TestKubectlSeesNoRelay runs every kubectl command of both lists against an API server, and
// through a relay.
func TestKubectlSeesNoRelay(t *testing.T) {
	for _, file := range []string{"kubectl.txt", "definitions.txt"} {
		t.Run(file, func(t *testing.T) { compareCommands(t, file, startReal(t), startRelay(t)) })
	}
}

// TestForeignClientsSeeNoRelay runs the scripts of foreign clients through a relay: no step
// differs.
func TestForeignClientsSeeNoRelay(t *testing.T) {
	theirs, ours := startReal(t), []*side{startRelay(t)}
	t.Run("clients", func(t *testing.T) {
		for _, c := range foreignClients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.compare(t, theirs, ours)
			})
		}
	})
}
