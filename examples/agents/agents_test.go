package agents

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// built is the folder of the programs.
var built string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "agents")
	if err == nil {
		built = folder
		var said []byte
		if said, err = exec.Command("go", "build", "-o", folder, "./cni", "./logs", "./flows", "./security").CombinedOutput(); err != nil {
			panic(string(said))
		}
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

const container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// node is an API server with a pod of a Deployment on node-1, and a program that runs there.
type node struct {
	t    *testing.T
	pods *collection.Collection[*corev1.Pod]
	pod  *corev1.Pod
	env  []string
	in   io.WriteCloser
	out  *bufio.Scanner
}

func newNode(t *testing.T) *node {
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	_, err = apiserver.Serve(api, builtin.Of[*corev1.Node]()).Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	require.NoError(t, err)
	above := metav1.ObjectMeta{Name: "web", UID: "uid-of-web"}
	set, err := apiserver.Serve(api, builtin.Of[*appsv1.ReplicaSet]()).Create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&above, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
	}})
	require.NoError(t, err)
	n := &node{t: t, pods: apiserver.Serve(api, builtin.Pods())}
	n.pod = n.create("web-1-a", *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	server := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); server.Close() })
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	n.env = append(os.Environ(), "KUBECONFIG="+path, "NODE_NAME=node-1")
	return n
}

func (n *node) create(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	pod, err := n.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, OwnerReferences: owners,
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "net-of-" + name},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	})
	require.NoError(n.t, err)
	pod.Status = corev1.PodStatus{
		PodIPs:            []corev1.PodIP{{IP: "10.0.0.7"}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "web:1", ContainerID: "containerd://" + container}},
	}
	pod, err = n.pods.UpdateStatus(pod)
	require.NoError(n.t, err)
	return pod
}

// start runs a program until the test ends.
func (n *node) start(program string, env ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, filepath.Join(built, program))
	cmd.Env, cmd.Stderr = append(n.env, env...), os.Stderr
	var err error
	n.in, err = cmd.StdinPipe()
	require.NoError(n.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	n.out = bufio.NewScanner(out)
	require.NoError(n.t, cmd.Start())
	n.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}

// line is the next line that the program prints, after one that it is told.
func (n *node) line(told string) string {
	_, err := io.WriteString(n.in, told)
	require.NoError(n.t, err)
	require.True(n.t, n.out.Scan(), "no line came")
	return n.out.Text()
}

func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func TestFlows(t *testing.T) {
	n := newNode(t)
	n.start("flows")
	require.Equal(t, "10.0.0.8 is no pod of this node", n.line("10.0.0.8\n"))
	// Until its owner is known, it is the ReplicaSet.
	for n.line("10.0.0.7\n") != "10.0.0.7 default/web-1-a Deployment web true" {
		require.Equal(t, "10.0.0.7 default/web-1-a ReplicaSet web-1 false", n.out.Text())
	}
}

func TestLogs(t *testing.T) {
	n, logs := newNode(t), t.TempDir()
	path := filepath.Join(logs, "default_web-1-a_"+string(n.pod.UID), "main", "0.log")
	write(t, path, "one\nhal")
	n.start("logs", "LOGS="+logs)
	require.Equal(t, "default/web-1-a of Deployment web: one", n.line(""))
	write(t, path, "f\n")
	require.Equal(t, "default/web-1-a of Deployment web: half", n.line(""))
}

func TestSecurity(t *testing.T) {
	n, proc := newNode(t), t.TempDir()
	write(t, proc+"/1/cgroup", "0::/init.scope\n")
	write(t, proc+"/4711/cgroup", "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod"+
		strings.ReplaceAll(string(n.pod.UID), "-", "_")+".slice/cri-containerd-"+container+".scope\n")
	write(t, proc+"/4712/cgroup", "1:name=systemd:/\n4:memory:/kubepods/besteffort/pod"+string(n.pod.UID)+"/"+container+"\n")
	n.start("security", "PROC="+proc)
	require.Equal(t, "4711 default/web-1-a main web:1", n.line("1\n4713\n4711\n"))
	require.Equal(t, "4712 default/web-1-a main web:1", n.line("4712\n"))
}

func TestCNI(t *testing.T) {
	n, folder := newNode(t), t.TempDir()
	socket, manifests := filepath.Join(folder, "socket"), filepath.Join(folder, "manifests")
	write(t, filepath.Join(manifests, "etcd.yaml"), "apiVersion: v1\nkind: Pod\n"+
		"metadata: {name: etcd, namespace: kube-system, annotations: {k8s.v1.cni.cncf.io/networks: net-of-etcd}}\n"+
		"spec: {containers: [{name: main, image: etcd}]}\n")
	n.start("cni", "SOCKET="+socket, "MANIFESTS="+manifests)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	add := func(namespace, name, uid string) string {
		var answer *http.Response
		require.Eventually(t, func() (ok bool) {
			var err error
			answer, err = client.Get("http://cni/add?" + url.Values{"namespace": {namespace}, "name": {name}, "uid": {uid}}.Encode())
			return err == nil
		}, time.Minute, 10*time.Millisecond) // until the program listens
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return strings.TrimSpace(string(text))
	}
	require.Equal(t, "net-of-web-1-a", add("default", "web-1-a", string(n.pod.UID)))
	later := n.create("later")
	require.Equal(t, "net-of-later", add("default", "later", string(later.UID)))
	require.Equal(t, "net-of-etcd", add("kube-system", "etcd-node-1", "the kubelet's"))
	require.Equal(t, "no source has the pod yet", add("default", "nobody", "nobody"))
}
