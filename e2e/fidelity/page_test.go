package fidelity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const opening = `# The fake beside a real API server

The server of ` + "`server/apiserver`" + `, and ` + "`listwatchtest`" + ` on it, answer as kube-apiserver
1.36.3 does. A table of requests is sent to both, and the answers are compared: the code, the
reason, the fields that an error names, the warnings, the body without UIDs, versions and times.

This page is made from that table (e2e/fidelity/testdata/cases.txt) by TestThePageIsTheTable.
TestAnswersAreThoseOfTheAPIServer fails when a case differs that is not listed here, and when a
listed case no longer differs.

Writes over HTTP are held to all rules. Go code that holds a collection is its owner: it stores an
object as it is, held to the rules of metadata and versions alone.

Two things are not in the table. The parameter ` + "`pretty`" + ` is not heeded: no answer is indented. And
the fake takes an object as large as a request, 3 MiB, where an etcd refuses more than half of that.

`

// TestThePageIsTheTable keeps docs/fake.md true; -update writes it.
func TestThePageIsTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "fake.md")
	want := page(readCases(t)) + commandsPage(commandsOpening, readSessions(t, "kubectl.txt"), theFake, theServe) +
		commandsPage(definitionsOpening, readSessions(t, "definitions.txt"), theServe) + clientsPage(t)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run the test with -update")
}

func page(sections []*section) string {
	var out, rows strings.Builder
	all, differ := 0, 0
	for _, s := range sections {
		fmt.Fprintf(&rows, "\n## %s\n\n", s.title)
		listed := 0
		for _, c := range s.cases {
			all++
			if c.differ == "" {
				continue
			}
			if listed == 0 {
				rows.WriteString("| case | what differs, and why |\n|---|---|\n")
			}
			listed++
			fmt.Fprintf(&rows, "| %s | %s |\n", c.name, c.differ)
		}
		differ += listed
		if listed == 0 {
			fmt.Fprintf(&rows, "All %d cases agree.\n", len(s.cases))
		} else {
			fmt.Fprintf(&rows, "\nThe other %d cases agree.\n", len(s.cases)-listed)
		}
	}
	out.WriteString(opening)
	fmt.Fprintf(&out, "Of %d cases, %d agree.\n", all, all-differ)
	out.WriteString(rows.String())
	return out.String()
}

const commandsOpening = `
## kubectl

A list of commands (e2e/fidelity/testdata/kubectl.txt) is run with kubectl 1.36.3 against
kube-apiserver, the fake and ` + "`tributary serve`" + ` on an etcd, from the same start: every output format,
selectors, watches, describe, create, apply on both sides, edit, diff, patch, scale, rollout,
delete, explain, discovery, access, nodes, custom resources, dry runs. TestKubectlSeesNoDifference
compares the exit code and the output, without UIDs, versions, times and addresses.

`

const definitionsOpening = `
## Definitions of custom resources

A list of commands (e2e/fidelity/testdata/definitions.txt) makes, changes and deletes definitions on
a real API server and on ` + "`tributary serve`" + `. TestDefinitionsSeeNoDifference compares them likewise.

`

const clientsOpening = `
## Clients in other languages

A script for each client (e2e/fidelity/testdata/clients) lists in pages, creates, patches in each
way, applies, watches, deletes, and reads errors as the client's own exceptions: on kube-apiserver,
on the fake over HTTP, and on ` + "`tributary serve`" + ` with the kubeconfig that it writes.
TestForeignClients compares the lines that the steps print.

| client | steps | alike on both |
|---|---|---|
`

func clientsPage(t testing.TB) string {
	var out, rows strings.Builder
	out.WriteString(clientsOpening)
	for _, c := range foreignClients {
		steps, differ := c.steps(t), 0
		for _, step := range steps {
			if why := clientDifferences[step]; why != "" {
				differ++
				fmt.Fprintf(&rows, "| %s | %s | %s |\n", c.name, step, why)
			}
		}
		fmt.Fprintf(&out, "| %s | %d | %d |\n", c.name, len(steps), len(steps)-differ)
	}
	out.WriteString("\n| client | step that differs | why |\n|---|---|---|\n")
	out.WriteString(rows.String())
	return out.String()
}

// serverNames are those of the page.
var serverNames = map[string]string{theFake: "the fake", theServe: "`tributary serve`"}

func commandsPage(opening string, sessions []*session, servers ...string) string {
	var out, rows strings.Builder
	all, exit, output := 0, map[string]int{}, map[string]int{}
	for _, s := range sessions {
		all += len(s.commands)
		for _, c := range s.commands {
			for _, server := range servers {
				if c.exit[server] != "" {
					exit[server]++
				}
				if c.exit[server]+c.output[server] != "" {
					output[server]++
				}
			}
			rows.WriteString(c.rows(servers))
		}
	}
	out.WriteString(opening)
	fmt.Fprintf(&out, "| of %d commands | exit alike | print the same |\n|---|---|---|\n", all)
	for _, server := range servers {
		fmt.Fprintf(&out, "| %s | %d | %d |\n", serverNames[server], all-exit[server], all-output[server])
	}
	if rows.Len() > 0 {
		out.WriteString("\n| command | server | what differs | why |\n|---|---|---|---|\n")
		out.WriteString(rows.String())
	}
	return out.String()
}

// rows are the differences of a command: one if they are the same on all servers.
func (c *command) rows(servers []string) string {
	var out strings.Builder
	row := func(server, what, why string) {
		if why != "" {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", strings.ReplaceAll(c.line, "|", "\\|"), server, what, why)
		}
	}
	for _, kind := range []struct {
		what string
		why  reasons
	}{{"exit code", c.exit}, {"output", c.output}} {
		if len(servers) > 1 && kind.why[theFake] == kind.why[theServe] {
			row("both", kind.what, kind.why[theFake])
			continue
		}
		for _, server := range servers {
			row(serverNames[server], kind.what, kind.why[server])
		}
	}
	return out.String()
}
