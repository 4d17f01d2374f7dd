package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// start serves a pod of a Deployment on node-1.
func start(t *testing.T) (pod *corev1.Pod, config *rest.Config) {
	klog.SetLogger(logr.Discard())
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
	pod, err = apiserver.Serve(api, builtin.Pods()).Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1-a", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}},
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	})
	require.NoError(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(func() { api.Close(); server.Close() })
	return pod, &rest.Config{Host: server.URL}
}

func TestWorkloadOfAnAddress(t *testing.T) {
	_, config := start(t)
	in, addresses := io.Pipe()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), config, "node-1", []string{"workload"}, in, out) }()
	told := bufio.NewScanner(lines)
	ask := func(address string) string {
		_, err := io.WriteString(addresses, address+"\n")
		require.NoError(t, err)
		require.True(t, told.Scan())
		return told.Text()
	}
	require.Equal(t, "10.0.0.8 is no pod of this node", ask("10.0.0.8"))
	// Until its owner is known, it is the ReplicaSet.
	for ask("10.0.0.7") != "10.0.0.7 default/web-1-a Deployment web true" {
		require.Equal(t, "10.0.0.7 default/web-1-a ReplicaSet web-1 false", told.Text())
	}
	require.NoError(t, addresses.Close())
	require.NoError(t, <-ended)
}

func TestLogs(t *testing.T) {
	pod, config := start(t)
	logs = t.TempDir()
	folder := filepath.Join(logs, "default_web-1-a_"+string(pod.UID), "main")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	log, err := os.Create(filepath.Join(folder, "0.log"))
	require.NoError(t, err)
	defer log.Close()
	write := func(text string) {
		_, err := log.WriteString(text)
		require.NoError(t, err)
	}
	write("one\nhal")
	lines, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config, "node-1", []string{"logs"}, nil, out) }()
	told := bufio.NewScanner(lines)
	require.True(t, told.Scan())
	require.Equal(t, "default/web-1-a map[app:web]: one", told.Text())
	write("f\n")
	require.True(t, told.Scan())
	require.Equal(t, "default/web-1-a map[app:web]: half", told.Text())
	cancel()
	require.NoError(t, <-ended)
}

func TestPodOfAProcess(t *testing.T) {
	pod, config := start(t)
	proc = t.TempDir()
	for pid, cgroup := range map[string]string{
		"1":    "0::/init.scope\n",
		"4711": "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice/cri-containerd-0123.scope\n",
		"4712": "1:name=systemd:/\n4:memory:/kubepods/besteffort/pod" + string(pod.UID) + "/0123\n",
	} {
		require.NoError(t, os.Mkdir(filepath.Join(proc, pid), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte(cgroup), 0o600))
	}
	var out strings.Builder
	require.NoError(t, run(t.Context(), config, "node-1", []string{"process", "1", "4711", "4712"}, nil, &out))
	require.Equal(t, "1 is of no pod\n4711 default/web-1-a\n4712 default/web-1-a\n", out.String())
	require.ErrorContains(t, run(t.Context(), config, "node-1", []string{"process", "4713"}, nil, io.Discard), "4713")
}

func TestUsage(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil, "node-1", nil, nil, nil), "which agent")
	require.ErrorContains(t, run(t.Context(), nil, "node-1", []string{"dns"}, nil, nil), `"dns"`)
}
