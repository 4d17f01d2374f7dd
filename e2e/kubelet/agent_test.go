package kubelet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	source "github.com/tributary-go/tributary/sources/kubelet"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/sources/static"
	"github.com/tributary-go/tributary/store"
)

// node is a real API server, the kubelet's own pods server and a folder of manifests, and one agent
// that reads them all.
type node struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  *kubernetes.Clientset
	kubelet *podsAPI
	folder  string // of manifests
	state   string // of checkpoints
	second  int64  // of the last status

	*sources.Sources
	*lookup.Lookup
	stop func() // ends the agent
	told chan map[string]map[string]*corev1.Pod
}

func startNode(t *testing.T) *node {
	n := &node{t: t, cluster: cluster.Start(t), kubelet: startPodsAPI(t, cluster.Kube136), folder: t.TempDir(), state: t.TempDir()}
	var err error
	n.client, err = kubernetes.NewForConfig(n.cluster.Server.Config(cluster.Admin))
	require.NoError(t, err)
	n.permit()
	_, err = n.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return n
}

// permit gives the agent the rights of the example's DaemonSet.
func (n *node) permit() {
	text, err := os.ReadFile("../../examples/node-agent/deploy/rights.yaml")
	require.NoError(n.t, err)
	var role rbacv1.ClusterRole
	require.NoError(n.t, yaml.UnmarshalStrict([]byte(strings.Split(string(text), "\n---\n")[1]), &role))
	_, err = n.client.RbacV1().ClusterRoles().Create(n.t.Context(), &role, metav1.CreateOptions{})
	require.NoError(n.t, err)
	_, err = n.client.RbacV1().ClusterRoleBindings().Create(n.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: cluster.AgentUser}},
	}, metav1.CreateOptions{})
	require.NoError(n.t, err)
}

// run starts the agent. Its reader keeps the pods of each source.
func (n *node) run() {
	n.t.Helper()
	client, err := listwatch.NewRESTClient(n.cluster.Server.Config(cluster.Agent), corev1.SchemeGroupVersion)
	require.NoError(n.t, err)
	n.Sources = sources.New("node-1", sources.WithLogger(logr.Discard()), sources.APIServer(client),
		source.PodsAPI(source.WithSocket(n.kubelet.socket), source.WithInterval(time.Second)),
		sources.File(n.folder, static.WithInterval(time.Second)),
		sources.Checkpoint(n.state))
	n.Lookup = lookup.New(n.Sources, lookup.Owners(client), lookup.KeepEnded(time.Hour))
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Sources.Run(ctx) }()
	n.told = make(chan map[string]map[string]*corev1.Pod, 1)
	go func() {
		told := map[string]map[string]*corev1.Pod{}
		for u := range n.Updates() {
			if told[u.Source] == nil {
				told[u.Source] = map[string]*corev1.Pod{}
			}
			for _, pod := range u.Pods {
				if told[u.Source][store.KeyOf(pod)] = pod; u.Op == sources.Remove {
					delete(told[u.Source], store.KeyOf(pod))
				}
			}
		}
		n.told <- told
	}()
	n.stop = func() {
		cancel()
		require.NoError(n.t, <-ended)
	}
	n.t.Cleanup(cancel)
}

// web creates a pod of a Deployment, and has the kubelet run it.
func (n *node) web(name string) *corev1.Pod {
	n.t.Helper()
	labels := map[string]string{"app": name, "track": "stable"}
	pod := runningPod(name, "")
	above := metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}
	set, err := n.client.AppsV1().ReplicaSets("default").Create(n.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&above, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(n.t, err)
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: name, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
	}
	pod, err = n.client.CoreV1().Pods("default").Create(n.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(n.t, err)
	n.runs(pod, "api")
	return pod
}

// runs has the kubelet run a pod of one of its sources.
func (n *node) runs(pod *corev1.Pod, from string) {
	n.t.Helper()
	own := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&own.ObjectMeta, "kubernetes.io/config.source", from)
	n.kubelet.put(own)
	n.status(own.UID)
}

// status gives a pod a new status, and returns its second.
func (n *node) status(uid types.UID) int64 {
	n.t.Helper()
	n.second++
	n.kubelet.started(string(uid), n.second)
	return n.second
}

// fresh waits until a change has come to the look-ups, and logs for how long.
func (n *node) fresh(what string, here func() bool) {
	n.t.Helper()
	began := time.Now()
	require.Eventually(n.t, here, patience, time.Millisecond, "%s: %+v", what, n.Status())
	n.t.Logf("%-45s %s", what, time.Since(began).Round(time.Millisecond))
}

// label changes a label on the API server, and waits for it.
func (n *node) label(pod *corev1.Pod, track string) {
	n.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"track":%q}}}`, track)
	_, err := n.client.CoreV1().Pods("default").Patch(n.t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(n.t, err)
	n.fresh("label from the API server: "+track, func() bool { return n.ByUID(pod.UID).Pod.Labels["track"] == track })
}

// tick changes the status of a pod on the kubelet, and waits for it.
func (n *node) tick(what string, uid types.UID) {
	n.t.Helper()
	second := n.status(uid)
	n.fresh("status from the kubelet: "+what, func() bool {
		p := n.ByUID(uid)
		status := p.Status()
		return p.StatusFrom == sources.KubeletSource && startOf(&corev1.Pod{Status: status}) == second
	})
}

// manifest writes the manifest of etcd, and waits for its label.
func (n *node) manifest(track string) {
	n.t.Helper()
	n.write(etcdManifest(track))
	n.fresh("label from a manifest: "+track, func() bool {
		p := n.ByUID(etcdUID)
		return p != nil && p.Pod.Labels["track"] == track
	})
}

func (n *node) write(text string) {
	require.NoError(n.t, os.WriteFile(filepath.Join(n.folder, "etcd.yaml"), []byte(text), 0o600))
}

const etcdUID = "5d41402abc4b2a76b9719d911017c592"

func etcdManifest(track string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, uid: " + etcdUID + ", labels: {track: " + track + "}}\n" +
		"spec: {containers: [{name: main, image: etcd}]}\n"
}

// whose is where the metadata and the status of a pod are from; empty without it.
func (n *node) whose(uid types.UID) string {
	p := n.ByUID(uid)
	if p == nil {
		return ""
	}
	return p.PodFrom + " " + p.StatusFrom
}

// intact: no pod was lost, and each has its workload.
func (n *node) intact(web *corev1.Pod) {
	n.t.Helper()
	require.Len(n.t, n.Merged(), 2)
	require.Equal(n.t, "api kubelet", n.whose(web.UID))
	require.Equal(n.t, "file kubelet", n.whose(etcdUID))
	owner, known := n.Owner(n.ByUID(web.UID).Pod)
	require.True(n.t, known)
	require.Equal(n.t, "Deployment web", owner.Kind+" "+owner.Name)
}

// end ends the agent, whose reader has been told this number of pods of each source.
func (n *node) end(want map[string]int) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		for _, s := range n.Status() {
			if s.Pods != want[s.Source] || s.Pending > 0 {
				return false
			}
		}
		return true
	}, patience, time.Millisecond, "%+v", n.Status())
	n.stop()
	told := <-n.told
	for source, pods := range want {
		require.Len(n.t, told[source], pods, source)
	}
}

// etcdOfTheKubelet is the static pod as the kubelet reads it.
func (n *node) etcdOfTheKubelet() *corev1.Pod {
	for _, p := range n.Merged() {
		if p.PodFrom == sources.FileSource {
			return p.Pod
		}
	}
	require.FailNow(n.t, "there is no pod of a file")
	return nil
}

// TestOneAgentOnThreeSources: a real API server, the kubelet's own pods server and manifest files
// feed one agent with the rights of examples/node-agent. Each change comes through its source; each
// source is lost in turn, and neither a pod nor a workload with it.
func TestOneAgentOnThreeSources(t *testing.T) {
	n := startNode(t)
	web := n.web("web")
	n.write(etcdManifest("stable"))
	n.run()
	<-n.Synced()
	etcd := n.etcdOfTheKubelet()
	n.runs(etcd, "file")
	n.fresh("the static pod from the kubelet", func() bool { return n.whose(etcdUID) == "file kubelet" })
	n.fresh("the workload of web", func() bool { _, known := n.Owner(web); return known })
	all := func() {
		t.Helper()
		n.label(web, fmt.Sprint("canary-", n.second))
		n.tick("web", web.UID)
		n.tick("etcd", etcdUID)
		n.manifest(fmt.Sprint("edited-", n.second))
		n.intact(web)
		require.NoError(t, n.Ready(time.Minute))
	}
	all()

	n.cluster.Server.Kill()
	n.fresh("the API server is away", func() bool { return len(n.Status()[0].Problems) == 1 })
	n.tick("web, without the API server", web.UID)
	n.manifest("without-the-API-server")
	n.intact(web)
	n.cluster.Server.Restart()
	all()

	n.kubelet.stop()
	n.fresh("the kubelet is away", func() bool { return len(n.Status()[1].Problems) == 1 })
	n.label(web, "without-the-kubelet")
	n.manifest("without-the-kubelet")
	n.intact(web)
	n.kubelet.start()
	n.runs(web, "api")
	n.runs(etcd, "file")
	all()

	n.write(etcdManifest("half")[:60])
	n.fresh("the manifest is half-written", func() bool { return len(n.Status()[2].Problems) == 1 })
	n.label(web, "without-the-manifest")
	n.tick("etcd, without its manifest", etcdUID)
	n.intact(web)
	all()

	// A restart finds the pods of the API server and their workloads in the checkpoints.
	require.Eventually(t, func() bool {
		kept, err := filepath.Glob(filepath.Join(n.state, "*"))
		return err == nil && len(kept) == 2
	}, patience, 10*time.Millisecond)
	n.end(map[string]int{sources.APISource: 1, sources.KubeletSource: 2, sources.FileSource: 1})
	n.cluster.Server.Kill()
	n.run()
	n.fresh("all pods after a restart of the agent", func() bool {
		return len(n.Merged()) == 2 && n.ByUID(web.UID) != nil && n.whose(etcdUID) == "file kubelet"
	})
	n.tick("web, after it", web.UID)
	n.intact(web)
	require.True(t, n.Status()[0].Restored)
	n.cluster.Server.Restart()
	n.fresh("the API server is read", func() bool { return !n.Status()[0].Restored && len(n.Status()[0].Problems) == 0 })
	all()

	// A pod that is deleted is gone from both, and its last state is kept.
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	n.kubelet.tell(map[string]any{"uid": web.UID, "terminated": true})
	n.kubelet.tell(map[string]any{"uid": web.UID, "removed": true})
	n.fresh("the deletion", func() bool { return len(n.Merged()) == 1 && !n.ByUID(web.UID).Ended.IsZero() })
	owner, known := n.Owner(n.ByUID(web.UID).Pod)
	require.True(t, known)
	require.Equal(t, "web", owner.Name)
	n.end(map[string]int{sources.APISource: 0, sources.KubeletSource: 1, sources.FileSource: 1})
}
