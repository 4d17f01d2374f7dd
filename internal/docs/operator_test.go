package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const classesPage, rightsPage, alertsPage = "docs/reference/classes.md", "docs/howto/rights.md", "docs/howto/alerts.md"

// TestEveryClassIsExplained: the table of classes has one row for each constant of reflector.Class,
// and no other.
func TestEveryClassIsExplained(t *testing.T) {
	atRoot(t)
	classes := map[string]bool{}
	for path := range files(t, ".go") {
		if !strings.HasPrefix(path, "reflector/") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Class" && len(spec.Values) == 1 {
					text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					classes[text] = true
				}
			}
			return true
		})
	}
	require.Greater(t, len(classes), 15)
	rows := map[string]bool{}
	_, table, found := strings.Cut(read(t, classesPage), "\n| class |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		rows[row[1]] = true
	}
	require.Equal(t, classes, rows)
}

// TestRights: the manifests can be read strictly, and each binding names a role and an account of
// the page.
func TestRights(t *testing.T) {
	atRoot(t)
	accounts, roles, bindings := map[string]bool{}, map[string]bool{}, 0
	for _, block := range blocks(t, rightsPage) {
		for _, document := range strings.Split(block, "---\n") {
			var kind metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(document), &kind))
			decode := func(into any) { require.NoError(t, yaml.UnmarshalStrict([]byte(document), into), document) }
			bound := func(of rbacv1.RoleRef, subjects []rbacv1.Subject) {
				bindings++
				require.Equal(t, rbacv1.GroupName, of.APIGroup)
				require.True(t, roles[of.Kind+" "+of.Name], document)
				for _, s := range subjects {
					require.True(t, accounts[s.Kind+" "+s.Namespace+"/"+s.Name], document)
				}
			}
			switch kind.Kind {
			case "ServiceAccount":
				var account corev1.ServiceAccount
				decode(&account)
				accounts["ServiceAccount "+account.Namespace+"/"+account.Name] = true
			case "ClusterRole":
				var role rbacv1.ClusterRole
				decode(&role)
				require.NotEmpty(t, role.Rules)
				roles["ClusterRole "+role.Name] = true
			case "Role":
				var role rbacv1.Role
				decode(&role)
				require.NotEmpty(t, role.Rules)
				roles["Role "+role.Name] = true
			case "ClusterRoleBinding":
				var binding rbacv1.ClusterRoleBinding
				decode(&binding)
				bound(binding.RoleRef, binding.Subjects)
			case "RoleBinding":
				var binding rbacv1.RoleBinding
				decode(&binding)
				bound(binding.RoleRef, binding.Subjects)
			default:
				t.Errorf("a manifest of kind %q", kind.Kind)
			}
		}
	}
	require.Equal(t, 3, bindings)
}

// TestAlerts: the rules have Prometheus' form, and use metrics, labels and classes that exist.
func TestAlerts(t *testing.T) {
	atRoot(t)
	labels := map[string][]string{}
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		labels[row[1]] = strings.Split(row[3], ", ")
	}
	require.Greater(t, len(labels), 20)
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	seen := 0
	for _, block := range blocks(t, alertsPage) {
		require.NoError(t, yaml.UnmarshalStrict([]byte(block), &rules))
		for _, rule := range rules.Groups[0].Rules {
			seen++
			names := regexp.MustCompile(`tributary_\w+`).FindAllString(rule.Expr, -1)
			require.Len(t, names, 1, rule.Alert)
			require.Contains(t, labels, names[0], rule.Alert)
			used := regexp.MustCompile(`(\w+)(?:=~|!=|=)"|\$labels\.(\w+)|by \((\w+)\)`)
			for _, label := range used.FindAllStringSubmatch(rule.Expr+rule.Annotations["summary"], -1) {
				require.Contains(t, labels[names[0]], label[1]+label[2]+label[3], rule.Alert)
			}
			for _, class := range regexp.MustCompile(`class=~"([^"]+)"`).FindAllStringSubmatch(rule.Expr, -1) {
				for _, name := range strings.Split(class[1], "|") {
					require.Contains(t, read(t, classesPage), "\n| `"+name+"` |", rule.Alert)
				}
			}
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		}
	}
	require.Greater(t, seen, 10)
}

func read(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(page)
}

// blocks has the manifests of a page.
func blocks(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, path), -1) {
		all = append(all, block[1])
	}
	return all
}
