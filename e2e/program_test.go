package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// buildFolder is for what tests build; TestMain removes it.
var buildFolder = filepath.Join(os.TempDir(), fmt.Sprint("tributary-e2e-", os.Getpid()))

// tributary builds cmd/tributary once for all tests.
var tributary = sync.OnceValues(func() (string, error) { return cluster.BuildTributary(buildFolder) })

// program is a running `tributary serve`.
type program struct {
	t       testing.TB
	process *exec.Cmd
	url     string
	// kubeconfig is the path that it printed.
	kubeconfig string

	problems strings.Builder // what it has written to stderr, once it has ended
}

// serveProgram starts cmd/tributary on a free port. It ends with the test.
func serveProgram(t testing.TB, flags ...string) *program {
	t.Helper()
	binary, err := tributary()
	require.NoError(t, err)
	p := &program{t: t, process: exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)}
	p.process.Stderr = &p.problems
	out, err := p.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.process.Start())
	t.Cleanup(p.kill)
	defer time.AfterFunc(2*time.Minute, func() { _ = p.process.Process.Kill() }).Stop()
	lines := bufio.NewReader(out)
	said, err := lines.ReadString('\n')
	if err != nil {
		_ = p.process.Wait()
		t.Fatalf("tributary has ended: %s", &p.problems)
	}
	p.url = regexp.MustCompile(`on (https://[0-9.:]+)`).FindStringSubmatch(said)[1]
	example, err := lines.ReadString('\n')
	require.NoError(t, err)
	p.kubeconfig = regexp.MustCompile(`^kubectl --kubeconfig (.+) get `).FindStringSubmatch(example)[1]
	return p
}

// kill is kill -9.
func (p *program) kill() {
	_ = p.process.Process.Kill() // it may have ended
	if _ = p.process.Wait(); p.t.Failed() {
		p.t.Logf("tributary's stderr: %s", &p.problems)
	}
}

func (p *program) config() *rest.Config {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	require.NoError(p.t, err)
	config.QPS = -1
	return config
}

// kubectl prepares a command; the test is skipped if there is no kubectl.
func (p *program) kubectl(arguments ...string) *exec.Cmd {
	p.t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		p.t.Skip("kubectl is not in PATH")
	}
	home := p.t.TempDir()
	command := exec.CommandContext(p.t.Context(), path, append([]string{"--kubeconfig", p.kubeconfig}, arguments...)...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none"), "PATH=" + os.Getenv("PATH")}
	return command
}

// say runs kubectl and returns what it says.
func (p *program) say(arguments ...string) string {
	p.t.Helper()
	out, err := p.kubectl(arguments...).CombinedOutput()
	require.NoError(p.t, err, string(out))
	return string(out)
}

// TestKubectlOnAServerOfOurOwn: create, apply, get -w and delete, and all objects after kill -9.
func TestKubectlOnAServerOfOurOwn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := serveProgram(t, "--data", data)
	manifest := filepath.Join(t.TempDir(), "pod.json")
	apply := func(label string) string {
		pod := newPod("web", "")
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.Labels["round"] = label
		text, err := json.Marshal(pod)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(manifest, text, 0o600))
		return strings.TrimSpace(p.say("apply", "-f", manifest))
	}
	require.Equal(t, "configmap/settings created", strings.TrimSpace(p.say("create", "configmap", "settings", "--from-literal=a=b")))
	require.Equal(t, "pod/web created", apply("one"))

	watch := p.kubectl("get", "pods", "-w", "--output-watch-events", "--no-headers", "-L", "round")
	out, err := watch.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, watch.Start())
	lines := bufio.NewScanner(out)
	next := func() string {
		require.True(t, lines.Scan())
		fields := strings.Fields(lines.Text())
		return fields[0] + " " + fields[1] + " " + fields[len(fields)-1]
	}
	require.Equal(t, "ADDED web one", next())
	require.Equal(t, "pod/web configured", apply("two"))
	require.Equal(t, "MODIFIED web two", next())
	require.Equal(t, "pod/web unchanged", apply("two"))
	require.Contains(t, p.say("delete", "pod", "web"), "deleted")
	require.Equal(t, "MODIFIED web two", next(), "marked first, as by kube-apiserver")
	require.Equal(t, "DELETED web two", next())
	_ = watch.Process.Kill() // it would wait for more
	_ = watch.Wait()

	require.Equal(t, "pod/web created", apply("three"))
	p.say("create", "deployment", "front", "--image=registry.example/web:1.27")
	before := p.say("get", "pods,configmaps,deployments", "-A", "-o", "yaml")
	p.kill()
	p = serveProgram(t, "--data", data)
	require.Equal(t, before, p.say("get", "pods,configmaps,deployments", "-A", "-o", "yaml"))
}

// TestRegistryAndBackup: out of a real control plane's etcd, and out of a backup of it, the program
// answers a LIST of every kind and a WATCH as kube-apiserver does, and kubectl shows the same pods.
func TestRegistryAndBackup(t *testing.T) {
	c := cluster.Start(t)
	w := newWorld(t, c)
	w.defineWidgets()
	w.fill(40)
	w.fillWidgets(20)
	_, err := w.client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	registry := serveProgram(t, "--registry", "--etcd", c.Etcd.URL())

	t.Run("LIST", func(t *testing.T) { sameLists(t, w.client.RESTClient(), registry) })

	t.Run("WATCH", func(t *testing.T) {
		ours, err := kubernetes.NewForConfig(registry.config())
		require.NoError(t, err)
		list, err := ours.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range 40 {
			require.NoError(t, w.annotate(t.Context(), i))
			if i%4 == 0 {
				require.NoError(t, w.client.CoreV1().Pods("default").Delete(t.Context(), podName(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		from := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
		want, stopWant := iter.Pull2(listwatch.FromClient[corev1.Pod](w.client.CoreV1().RESTClient(), "pods").Watch(ctx, from))
		defer stopWant()
		got, stopGot := iter.Pull2(listwatch.FromClient[corev1.Pod](ours.CoreV1().RESTClient(), "pods").Watch(ctx, from))
		defer stopGot()
		for range 50 {
			wanted, err, _ := want()
			require.NoError(t, err)
			came, err, _ := got()
			require.NoError(t, err)
			require.Equal(t, wanted, came)
		}
	})

	t.Run("WATCH of every kind", func(t *testing.T) { sameWatches(t, w.client.RESTClient(), registry) })

	t.Run("backup", func(t *testing.T) {
		rows := func(p *program) (all []string) {
			for line := range strings.Lines(p.say("get", "pods", "-A", "-o", "wide")) {
				fields := strings.Fields(line) // the age grows
				all = append(all, strings.Join(append(fields[:5:5], fields[6:8]...), " "))
			}
			return all
		}
		saved := serveProgram(t, "--backup", c.Etcd.Snapshot())
		sameLists(t, w.client.RESTClient(), saved)
		pods := rows(saved)
		require.Len(t, pods, 31)
		require.Equal(t, []string{"NAMESPACE NAME READY STATUS RESTARTS IP NODE", "default pod-00001 0/1 Pending 0 <none> node-01"}, pods[:2])
		require.Equal(t, rows(registry), pods)
		widgets := saved.say("get", "widgets", "-A", "--field-selector=spec.nodeName=node-01", "-o", "name")
		require.Equal(t, "widget.e2e.tributary.dev/pod-00001", strings.TrimSpace(widgets))
		out, err := saved.kubectl("delete", "pod", "pod-00001").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "does not allow")
	})
}

// sameLists compares a LIST of every kind that the program serves with kube-apiserver's.
func sameLists(t *testing.T, server rest.Interface, p *program) {
	t.Helper()
	client, collections := p.collections(t)
	objects, kinds := 0, 0
	for _, c := range collections {
		want, got := items(t, server, c.path("")), items(t, client, c.path(""))
		require.Equal(t, want, got, c.path(""))
		objects += len(want)
		if len(want) > 0 {
			kinds++
		}
	}
	t.Logf("%d objects of %d kinds are equal", objects, kinds)
	require.Greater(t, kinds, 12)
}

// sameWatches changes an object of every kind, and compares the event with kube-apiserver's.
func sameWatches(t *testing.T, server rest.Interface, p *program) {
	t.Helper()
	client, collections := p.collections(t)
	kinds := 0
	for _, c := range collections {
		present := items(t, server, c.path(""))
		if len(present) == 0 {
			continue
		}
		kinds++
		of := present[0]
		text, err := server.Get().AbsPath(c.path("")).Param("limit", "1").DoRaw(t.Context())
		require.NoError(t, err)
		var list metav1.PartialObjectMetadataList
		require.NoError(t, json.Unmarshal(text, &list))
		patch := `{"metadata":{"annotations":{"e2e.tributary.dev/watched":"yes"}}}`
		err = server.Patch(types.MergePatchType).AbsPath(c.path(of.GetNamespace()), of.GetName()).Body([]byte(patch)).Do(t.Context()).Error()
		require.NoError(t, err, c.path(of.GetNamespace()))
		first := func(client rest.Interface) string {
			stream, err := client.Get().AbsPath(c.path("")).SetHeader("Accept", "application/json").
				Param("watch", "1").Param("resourceVersion", list.ResourceVersion).Param("timeoutSeconds", "30").
				Param("fieldSelector", "metadata.name="+of.GetName()).Stream(t.Context())
			require.NoError(t, err, c.path(""))
			defer stream.Close()
			line, err := bufio.NewReader(stream).ReadString('\n')
			require.NoError(t, err, c.path(""))
			return line
		}
		want := first(server)
		require.Contains(t, want, "e2e.tributary.dev/watched", c.path(""))
		require.JSONEq(t, want, first(client), c.path(""))
	}
	t.Logf("events of %d kinds are equal", kinds)
	require.Greater(t, kinds, 12)
}

// collectionPath is where a kind is served.
type collectionPath struct {
	root, resource string
	namespaced     bool
}

// path is that of the collection, or of its part in a namespace.
func (c collectionPath) path(namespace string) string {
	if c.namespaced && namespace != "" {
		return c.root + "/namespaces/" + namespace + "/" + c.resource
	}
	return c.root + "/" + c.resource
}

// collections are all that the program serves.
func (p *program) collections(t *testing.T) (client rest.Interface, all []collectionPath) {
	t.Helper()
	served, err := discovery.NewDiscoveryClientForConfig(p.config())
	require.NoError(t, err)
	groups, err := served.ServerPreferredResources()
	require.NoError(t, err)
	for _, group := range groups {
		root := "/apis/" + group.GroupVersion
		if group.GroupVersion == "v1" {
			root = "/api/v1"
		}
		for _, r := range group.APIResources {
			if slices.Contains(r.Verbs, "list") { // reviews are asked, and not stored
				all = append(all, collectionPath{root, r.Name, r.Namespaced})
			}
		}
	}
	return served.RESTClient(), all
}

// items are the objects of a list, in the order of their keys.
func items(t *testing.T, client rest.Interface, path string) []unstructured.Unstructured {
	t.Helper()
	text, err := client.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
	require.NoError(t, err, path)
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal(text, &list), path)
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return strings.Compare(store.KeyOf(&a), store.KeyOf(&b))
	})
	return list.Items
}
