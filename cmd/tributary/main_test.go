package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// asProgram makes the test binary the program, so that a test can kill it.
const asProgram = "TRIBUTARY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	if folder := os.Getenv(asEtcd); folder != "" {
		beEtcd(folder)
	}
	os.Exit(m.Run())
}

const patience = 2 * time.Minute // for a start, on a machine that is busy

// program is `tributary serve` in a process of its own.
type program struct {
	t       *testing.T
	process *exec.Cmd
	url     string // of the server
	etcd    string // of the etcd in the process, if there is one
	config  *rest.Config
	// kubeconfig is the path that was printed; empty if there is none.
	kubeconfig string
	stderr     transcript
}

// launch starts the program on a free port, and returns once it has said where it serves.
func launch(t *testing.T, flags ...string) *program {
	t.Helper()
	p := &program{t: t, process: exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)}
	p.process.Env = append(os.Environ(), asProgram+"=1")
	p.process.Stderr = &p.stderr
	out, err := p.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.process.Start())
	t.Cleanup(p.kill)
	defer time.AfterFunc(patience, func() { _ = p.process.Process.Kill() }).Stop()
	lines := bufio.NewReader(out)
	said, err := lines.ReadString('\n')
	if err != nil {
		_ = p.process.Wait()
		t.Fatalf("it has ended: %s", &p.stderr)
	}
	p.url = regexp.MustCompile(`on (https?://[0-9.:]+)`).FindStringSubmatch(said)[1]
	if found := regexp.MustCompile(`etcd at (unix:[^ ,]+)`).FindStringSubmatch(said); found != nil {
		p.etcd = found[1]
	}
	example, err := lines.ReadString('\n')
	require.NoError(t, err)
	p.config, p.kubeconfig = configOf(t, p.url, example)
	return p
}

// configOf is what the command that was printed tells kubectl.
func configOf(t *testing.T, url, example string) (config *rest.Config, kubeconfig string) {
	t.Helper()
	config = &rest.Config{Host: url}
	if found := regexp.MustCompile(`^kubectl --kubeconfig (.+) get `).FindStringSubmatch(example); found != nil {
		var err error
		kubeconfig = found[1]
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
		require.NoError(t, err)
		require.Equal(t, url, config.Host)
	} else {
		require.True(t, strings.HasPrefix(example, "kubectl -s "+url+" get "), example)
	}
	config.QPS = -1
	return config, kubeconfig
}

// kill ends the process as kill -9 does.
func (p *program) kill() {
	_ = p.process.Process.Kill() // it may have ended
	_ = p.process.Wait()
}

func (p *program) client() *kubernetes.Clientset {
	p.t.Helper()
	client, err := kubernetes.NewForConfig(p.config)
	require.NoError(p.t, err)
	return client
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}

// TestKilledServerKeepsItsObjects: every write that was acknowledged is there after kill -9, under
// the version that it had.
func TestKilledServerKeepsItsObjects(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var want []corev1.Pod
	for round := range 3 {
		p := launch(t, "--data", data)
		list, err := p.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, len(want))
		for i := range want {
			require.Equal(t, want[i], list.Items[i])
		}
		for i := range 5 {
			created, err := p.client().CoreV1().Pods("default").Create(t.Context(), pod(strings.Repeat("p", 5*round+i+1)), metav1.CreateOptions{})
			require.NoError(t, err)
			want = append(want, *created)
		}
		p.kill()
	}
}

// TestServersShareAnEtcd: one server's write is in the other's next answer, and a second process on
// one data folder is refused.
func TestServersShareAnEtcd(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	one := launch(t, "--data", data)
	two := launch(t, "--etcd", one.etcd)
	created, err := one.client().AppsV1().Deployments("default").Create(t.Context(), deployment(), metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := two.client().AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, created, got)

	var stderr strings.Builder
	code := run(t.Context(), []string{"serve", "--data", data}, io.Discard, &stderr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr.String(), "another process may be using")
}

// TestReadOnly: a registry and a backup are read, and refuse writes. A damaged backup is refused.
func TestReadOnly(t *testing.T) {
	origin := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods", "--resource", "testdata/crontabs.yaml")
	_, err := origin.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	want, err := origin.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{origin.etcd}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	content, err := io.ReadAll(snapshot)
	require.NoError(t, err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, os.WriteFile(backup, content, 0o600))

	for name, flags := range map[string][]string{
		"registry": {"--registry", "--etcd", origin.etcd},
		"backup":   {"--backup", backup},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, flags...)
			got, err := p.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, want.Items, got.Items)
			_, err = p.client().CoreV1().Pods("default").Create(t.Context(), pod("new"), metav1.CreateOptions{})
			require.True(t, apierrors.IsMethodNotSupported(err), "%v", err)
		})
	}
	content[len(content)/2]++
	require.NoError(t, os.WriteFile(backup, content, 0o600))
	var stderr strings.Builder
	require.Equal(t, exitFailed, run(t.Context(), []string{"serve", "--backup", backup}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "is damaged")
	require.Contains(t, stderr.String(), "revision")
}

// TestCustomResources: a definition's resource is served with its columns and selectable fields,
// and is held to its schema.
func TestCustomResources(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "testdata/crontabs.yaml")
	client, err := dynamic.NewForConfig(p.config)
	require.NoError(t, err)
	crontabs := client.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}).Namespace("default")
	for _, name := range []string{"one", "two"} {
		_, err := crontabs.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"schedule": "at " + name, "replicas": int64(3), "unknown": "dropped"},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	one, err := crontabs.Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"schedule": "at one", "replicas": int64(3), "suspend": false}, one.Object["spec"])
	_, err = crontabs.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	list, err := crontabs.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.schedule=at two"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "two", list.Items[0].GetName())

	core := p.client().CoreV1().RESTClient()
	table, err := core.Get().AbsPath("/apis/stable.example.com/v1/crontabs").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(table), `"cells":["one","at one",3,null]`)
}

// begin runs the program in this process, and returns once it has said where it serves. The
// function that it returns ends the program and waits for its end.
func begin(t *testing.T, flags ...string) (said string, config *rest.Config, end func()) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	text, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...), out, io.Discard)
		_ = out.Close()
	}()
	lines := bufio.NewReader(text)
	said, err := lines.ReadString('\n')
	require.NoError(t, err)
	example, err := lines.ReadString('\n')
	require.NoError(t, err)
	config, _ = configOf(t, regexp.MustCompile(`on (https?://[0-9.:]+)`).FindStringSubmatch(said)[1], example)
	return said, config, func() {
		stop()
		_, _ = io.Copy(io.Discard, text)
		require.Equal(t, exitOK, <-ended)
	}
}

// TestDataOutlivesOrderlyEnd: the program ends with its context, and leaves nothing running.
func TestDataOutlivesOrderlyEnd(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for range 2 {
		said, _, end := begin(t, "--data", data, "--resource", "pods")
		require.Contains(t, said, "serving 1 resources")
		end()
	}
}

// TestStatusPage: the page has a row for each collection, and their errors.
func TestStatusPage(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods,deployments.apps", "--status", address)
	_, err = p.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	response, err := http.Get("http://" + address)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^synced    etcd/pods +watch cache +1 `, string(text))
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	require.NoError(t, err)
	rebound.Host = "rebound.example"
	refused, err := http.DefaultClient.Do(rebound)
	require.NoError(t, err)
	require.NoError(t, refused.Body.Close())
	require.Equal(t, http.StatusForbidden, refused.StatusCode)
	require.Regexp(t, `(?m)^synced    etcd/deployments\.apps +watch cache +0 `, string(text))
}

// TestServersEmptyANamespaceTogether: a namespace is deleted through one server of an etcd, with
// objects of built-in and custom kinds that were made through both. It is empty when it is gone.
// Writers that go on meanwhile leave nothing behind. A server that starts later does what is left.
func TestServersEmptyANamespaceTogether(t *testing.T) {
	one := launch(t, "--data", filepath.Join(t.TempDir(), "data"))
	two := launch(t, "--etcd", one.etcd)
	one.define(crontabs(t))
	two.until(func() bool {
		_, err := two.documents(crontabsV1).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	namespaces := one.client().CoreV1().Namespaces()
	gone := func() {
		t.Helper()
		one.until(func() bool {
			_, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	renew := func() {
		t.Helper()
		made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.NamespaceActive, made.Status.Phase)
		two.until(func() bool { // its cache follows
			_, err := two.client().CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
			return err == nil
		})
	}
	renew()
	_, err := two.documents(crontabsV1).Namespace("a").Create(t.Context(), crontab("tab", "v1"), metav1.CreateOptions{})
	require.NoError(t, err)
	var writing sync.WaitGroup
	refused := false
	writing.Go(func() {
		maps := two.client().CoreV1().ConfigMaps("a")
		for !refused {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}}, metav1.CreateOptions{})
			refused = err != nil
		}
	})
	require.NoError(t, namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	writing.Wait()
	gone()
	renew()
	left, err := one.client().CoreV1().ConfigMaps("a").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, left.Items)
	tabs, err := one.documents(crontabsV1).Namespace("a").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, tabs.Items)

	// A server that starts meanwhile sees it through.
	_, err = one.client().CoreV1().Secrets("a").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Finalizers: []string{"example.com/f"}}, StringData: map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	two.kill()
	three := launch(t, "--etcd", one.etcd)
	secret, err := three.client().CoreV1().Secrets("a").Patch(t.Context(), "s", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"k": []byte("v")}, secret.Data)
	require.Empty(t, secret.StringData)
	gone()
}
