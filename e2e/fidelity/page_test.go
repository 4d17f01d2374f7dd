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

The server of ` + "`watchcache/apiserver`" + `, and ` + "`listwatchtest`" + ` on it, answer as kube-apiserver
1.36.3 does. A table of requests is sent to both, and the answers are compared: the code, the
reason, the fields that an error names, the warnings, the body without UIDs, versions and times.

This page is made from that table (e2e/fidelity/testdata/cases.txt) by TestThePageIsTheTable.
TestAnswersAreThoseOfTheAPIServer fails when a case differs that is not listed here, and when a
listed case no longer differs.

Writes over HTTP are held to all rules. Go code that holds a collection is its owner: it stores an
object as it is, held to the rules of metadata and versions alone.

`

// TestThePageIsTheTable keeps docs/fake.md true; -update writes it.
func TestThePageIsTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "fake.md")
	want := page(readCases(t))
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
