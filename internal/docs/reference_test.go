package docs_test

import (
	"cmp"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/reference")

// metricRow is a row of the page of metrics: name, type, labels and meaning.
var metricRow = regexp.MustCompile(`(?m)^\| ` + "`(tributary_\\w+)`" + ` \| (counter|gauge|histogram) \| ([\w, ]+) \| [^|]+ \|$`)

// TestMetricsPage: the page has the metrics that the packages declare, and those of prom itself.
func TestMetricsPage(t *testing.T) {
	atRoot(t)
	var declared, shown []string
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		shown = append(shown, row[1])
	}
	for _, file := range []string{"reflector/samples.go", "informer/samples.go", "sources/samples.go", "refs/status.go", "controller/status.go", "internal/loop/counts.go"} {
		for _, found := range regexp.MustCompile(`metrics\.(?:Gauge|Counter)\("(tributary_\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			declared = append(declared, found[1])
		}
	}
	for _, found := range regexp.MustCompile(`(?:counter|histogram)\("(\w+)"`).FindAllStringSubmatch(read(t, "prom/prom.go"), -1) {
		declared = append(declared, "tributary_reflector_"+found[1])
	}
	require.Greater(t, len(declared), 60)
	require.ElementsMatch(t, declared, shown)
}

// TestOptionsPage: the page has each exported function that returns an option.
func TestOptionsPage(t *testing.T) {
	atRoot(t)
	var text strings.Builder
	found := 0
	for _, folder := range slices.Sorted(maps.Keys(goFolders(t))) {
		if strings.Contains("/"+folder+"/", "/internal/") {
			continue
		}
		rows := optionsOf(t, folder)
		if len(rows) == 0 {
			continue
		}
		found += len(rows)
		text.WriteString("\n## " + folder + "\n\n| option | type | |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
	require.Greater(t, found, 60)
	requireMade(t, "docs/reference/options.md", "<!-- The options, by go test ./internal/docs -update -->\n", "<!-- The end of the options. -->\n", text.String()+"\n")
}

// optionsOf has a row for each function of a package that returns one Option of any kind.
func optionsOf(t *testing.T, folder string) (rows []string) {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results.NumFields() != 1 {
				continue
			}
			kind := types.ExprString(f.Type.Results.List[0].Type)
			if !regexp.MustCompile(`^\w*Option(\[\w+\])?$`).MatchString(kind) {
				continue
			}
			var parameters []string
			for _, field := range f.Type.Params.List {
				for _, name := range field.Names {
					parameters = append(parameters, name.Name+" "+types.ExprString(field.Type))
				}
			}
			call := f.Name.Name + "(" + strings.Join(parameters, ", ") + ")"
			synopsis := strings.NewReplacer("|", `\|`, "[", "", "]", "").Replace(described(f.Doc.Text()))
			rows = append(rows, "| `"+strings.ReplaceAll(call, "|", `\|`)+"` | `"+kind+"` | "+synopsis+" |\n")
		}
	}
	slices.SortFunc(rows, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return rows
}

// described is the first sentence of a documentation, and those that name a default.
func described(text string) string {
	said := new(doc.Package).Synopsis(text)
	paragraphs := strings.ReplaceAll(strings.TrimSpace(text), "\n", " ")
	for _, sentence := range strings.SplitAfter(paragraphs, ". ") {
		sentence = strings.TrimSpace(sentence)
		if regexp.MustCompile(`(?i)\bdefaults?\b`).MatchString(sentence) && !strings.Contains(said, sentence) {
			said += " " + sentence
		}
	}
	return said
}

// requireMade holds a part of a page against the text that it is made from; -update writes it.
func requireMade(t *testing.T, path, begin, end, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, path)
	got, after, found := strings.Cut(rest, end)
	require.True(t, found, path)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o600))
		return
	}
	require.True(t, want == got, "%s is not as its source says: go test ./internal/docs -update writes it anew", path)
}
