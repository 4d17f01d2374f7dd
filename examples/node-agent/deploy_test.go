package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestDeployIsStrict: each document has the fields of its type and no other, and the parts name
// each other.
func TestDeployIsStrict(t *testing.T) {
	var agent appsv1.DaemonSet
	var account corev1.ServiceAccount
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	decode(t, "deploy/node-agent.yaml", &agent)
	decode(t, "deploy/rights.yaml", &account, &role, &binding)

	require.Equal(t, agent.Spec.Selector.MatchLabels, agent.Spec.Template.Labels)
	require.Equal(t, account.Name, agent.Spec.Template.Spec.ServiceAccountName)
	require.Equal(t, account.Namespace, agent.Namespace)
	require.Equal(t, role.Name, binding.RoleRef.Name)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)
	for _, rule := range role.Rules {
		require.Subset(t, []string{"get", "list", "watch"}, rule.Verbs)
	}
	container := agent.Spec.Template.Spec.Containers[0]
	var arguments []string
	for _, argument := range container.Args {
		arguments = append(arguments, strings.ReplaceAll(argument, "$(HOST_IP)", "10.0.0.1"))
	}
	require.Contains(t, container.Env, corev1.EnvVar{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
	}})
	var advice struct{ Env []corev1.EnvVar } // of the error without it
	_, lines, _ := strings.Cut(errNoNode.Error(), "\n")
	require.NoError(t, yaml.UnmarshalStrict([]byte(lines), &advice))
	require.Subset(t, container.Env, advice.Env)
	o, err := parse(arguments, os.Stderr)
	require.NoError(t, err)
	mounts := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.MountPath] = !mount.ReadOnly
	}
	require.Equal(t, map[string]bool{o.logs: false, o.manifests: false, o.state: true}, mounts)
	require.Equal(t, "https://10.0.0.1:10250/pods", o.kubelet)
}

// decode decodes the documents of a file into objects, strictly.
func decode(t *testing.T, path string, into ...runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	documents := strings.Split(string(text), "\n---\n")
	require.Len(t, documents, len(into))
	for i, document := range documents {
		_, kind, err := strict.Decode([]byte(document), nil, into[i])
		require.NoError(t, err, "%s, document %d", path, i+1)
		require.NotEmpty(t, kind.Kind)
	}
}

// TestDeployIsApplied: kubectl takes the folder.
func TestDeployIsApplied(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not in PATH")
	}
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.Serve(api, builtin.Of[*corev1.ServiceAccount]())
	apiserver.Serve(api, builtin.Of[*appsv1.DaemonSet]())
	apiserver.Serve(api, builtin.Of[*rbacv1.ClusterRole]())
	apiserver.Serve(api, builtin.Of[*rbacv1.ClusterRoleBinding]())
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Close()
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), kubectl, "-s", server.URL, "apply", "--dry-run=client", "-f", "deploy")
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none"), "PATH=" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{
		"daemonset.apps/node-agent created (dry run)",
		"serviceaccount/node-agent created (dry run)",
		"clusterrole.rbac.authorization.k8s.io/node-agent created (dry run)",
		"clusterrolebinding.rbac.authorization.k8s.io/node-agent created (dry run)",
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))
}

// TestDeployWithARelay: the relay copies the pods of its node, with no right for anything else. The
// agent behind it is the same one, but for the way to the API server.
func TestDeployWithARelay(t *testing.T) {
	var relay, behind, direct appsv1.DaemonSet
	var service corev1.Service
	var owner corev1.ServiceAccount
	var role rbacv1.ClusterRole
	var binding, reviews rbacv1.ClusterRoleBinding
	decode(t, "deploy/relay/relay.yaml", &relay, &service)
	decode(t, "deploy/relay/rights.yaml", &owner, &role, &binding, &reviews)
	decode(t, "deploy/relay/node-agent.yaml", &behind)
	decode(t, "deploy/node-agent.yaml", &direct)

	require.Equal(t, owner.Name, relay.Spec.Template.Spec.ServiceAccountName)
	require.Equal(t, relay.Spec.Template.Labels, service.Spec.Selector)
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}, role.Rules)
	require.Equal(t, role.Name, binding.RoleRef.Name)
	for _, b := range []rbacv1.ClusterRoleBinding{binding, reviews} {
		require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: owner.Name, Namespace: owner.Namespace}}, b.Subjects)
	}
	host := service.Name + "." + service.Namespace + ".svc"
	require.Contains(t, relay.Spec.Template.Spec.Containers[0].Args, "--host="+host)
	container := behind.Spec.Template.Spec.Containers[0]
	require.Contains(t, container.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: host})
	require.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "api", MountPath: strings.TrimSuffix(account, "/"), ReadOnly: true})
	require.Equal(t, direct.Spec.Template.Spec.Containers[0].Image, container.Image)
	require.Subset(t, direct.Spec.Template.Spec.Containers[0].Args, container.Args)
	require.Equal(t, direct.Spec.Template.Spec.Containers[0].SecurityContext, container.SecurityContext)
}
