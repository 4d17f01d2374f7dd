package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

const (
	goneOwners = 300
	cronJobs   = 7
)

// atOnce deletes an object without the work of a garbage collector, which does not run here.
var atOnce = func() metav1.DeleteOptions {
	policy := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}()

// TestOwnersThatAreGone: each of 300 Jobs of 7 CronJobs is deleted right after its pod was created,
// and each of 300 ReplicaSets. The agent has a client at client-go's default pace. No wrong owner
// is ever told as known. With the verb list nearly all are known; without it, the rest is guessed.
func TestOwnersThatAreGone(t *testing.T) {
	w := newWorld(t, cluster.Start(t))
	get := []rbacv1.PolicyRule{
		{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"replicasets"}},
		{Verbs: []string{"get"}, APIGroups: []string{"batch"}, Resources: []string{"jobs"}},
	}
	result := table("rights", "kind", "known", "known and wrong", "guessed", "wrong or no guess", "the last after")
	w.permit("get", cluster.NobodyUser, get...)
	get[1].Verbs, get[2].Verbs = []string{"get", "list"}, []string{"get", "list"}
	w.permit("get-and-list", cluster.AgentUser, get...)
	for _, rights := range []struct{ name, token string }{{"get, list", cluster.Agent}, {"get", cluster.Nobody}} {
		for _, kind := range []struct {
			name   string
			create func(ctx context.Context, name string, i int) (own *metav1.OwnerReference, above string, end func() error)
		}{{"Job", w.goneJob}, {"ReplicaSet", w.goneSet}} {
			node := fmt.Sprintf("node-%s-%d", rights.token[len(rights.token)-5:], len(kind.name))
			known, wrong, guessed, after := w.play(t, rights.token, node, kind.create)
			result.add(rights.name, kind.name, known, wrong, guessed, goneOwners-known-guessed-wrong, after.Round(time.Millisecond))
			require.Zero(t, wrong)
			require.Equal(t, goneOwners, known+guessed)
			if rights.token == cluster.Agent {
				require.GreaterOrEqual(t, known, 295)
			}
		}
	}
	t.Logf("\n%s", result)
}

// play creates the pods of a node, and deletes the owner of each at once.
func (w *world) play(t *testing.T, token, node string,
	create func(context.Context, string, int) (*metav1.OwnerReference, string, func() error)) (known, wrong, guessed int, after time.Duration) {
	config := w.cluster.Server.Config(token)
	config.QPS = 0 // five a second
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	s := sources.New(node, sources.WithLogger(logr.Discard()), sources.APIServer(client))
	who := lookup.New(s, lookup.Owners(client), lookup.KeepEnded(5*time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		for range s.Updates() {
		}
	}()
	<-s.Synced()
	want := map[types.UID]string{}
	for i := range goneOwners {
		own, above, end := create(ctx, node, i)
		pod := newPod(fmt.Sprint(node, "-", i), node)
		pod.OwnerReferences = []metav1.OwnerReference{*own}
		pod.Labels["pod-template-hash"] = fmt.Sprintf("%010d", i)
		pod, err := w.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, end())
		want[pod.UID] = above
	}
	began := time.Now()
	require.Eventually(t, func() bool { // all pods are there, and each owner has an answer
		status := s.Status()
		return status[0].Pods == goneOwners && status[1].Seen
	}, 30*time.Second, time.Millisecond, "%+v", s.Status())
	after = time.Since(began)
	for uid, above := range want {
		pod := who.ByUID(uid).Pod
		owner, is := who.Owner(pod)
		guess, reason := who.Guess(pod)
		switch {
		case is && owner.Kind+" "+owner.Name == above:
			known++
		case is:
			wrong++
		case guess.Kind+" "+guess.Name == above:
			require.ErrorContains(t, reason, "is gone")
			guessed++
		}
	}
	cancel()
	require.NoError(t, <-ended)
	return known, wrong, guessed, after
}

func (w *world) goneJob(ctx context.Context, node string, i int) (*metav1.OwnerReference, string, func() error) {
	above := metav1.ObjectMeta{Name: fmt.Sprint(node, "-", i%cronJobs), UID: types.UID(fmt.Sprint("uid-", i%cronJobs))}
	template := newPod("", "")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	jobs := w.client.BatchV1().Jobs("default")
	job, err := jobs.Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("%s-%d", above.Name, time.Now().Unix()/60-int64(i/cronJobs)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&above, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: template.Spec}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")), "CronJob " + above.Name, func() error {
		return jobs.Delete(ctx, job.Name, atOnce)
	}
}

func (w *world) goneSet(ctx context.Context, node string, i int) (*metav1.OwnerReference, string, func() error) {
	set := replicaSet(i)
	above := set.OwnerReferences[0].Name
	sets := w.client.AppsV1().ReplicaSets("default")
	set, err := sets.Create(ctx, set, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")), "Deployment " + above, func() error {
		return sets.Delete(ctx, set.Name, atOnce)
	}
}
