package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/store"
)

const (
	ownersInUse  = 30 // on one node
	ownersOfAll  = 300
	ownerAgents  = 20
	ownerUpdates = 2000
)

// TestOwnersCost: what the owners of a node cost the API server: asked for by name, as
// lookup.Owners does, by a watch of metadata for each name, and by one watch of their labels. The
// agents of twenty nodes start, and then statuses of ReplicaSets change.
func TestOwnersCost(t *testing.T) {
	onServers(t, ownersCost)
}

func ownersCost(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	w := newWorld(t, on.start(t))
	sets := make([]*appsv1.ReplicaSet, ownersOfAll)
	w.each(len(sets), func(ctx context.Context, i int) (err error) {
		sets[i], err = w.client.AppsV1().ReplicaSets("default").Create(ctx, replicaSet(i), metav1.CreateOptions{})
		return err
	})
	result := table("way", "agents", "requests", "kB", "CPU of the server, ms", "2,000 updates: kB", "CPU, ms")
	bytes := map[string]int{}
	for _, way := range []struct {
		name  string
		start func(context.Context, *testing.T, *rest.Config, []*appsv1.ReplicaSet) (running []waiter)
	}{
		{"get by name", askForOwners},
		{"watch per name", watchOwnersByName},
		{"watch of labels", watchOwnersByLabel},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		tap := &wire{}
		before := w.cluster.Server.CPU()
		var all []waiter
		for i := range ownerAgents {
			own := sets[i*10 : i*10+ownersInUse]
			all = append(all, way.start(ctx, t, tap.on(w.cluster.Server.Config(cluster.Admin)), own)...)
		}
		for _, one := range all {
			one.synced()
		}
		started, requests, atStart := w.cluster.Server.CPU()-before, len(tap.log()), tap.bytes()
		before = w.cluster.Server.CPU()
		w.each(ownerUpdates, func(ctx context.Context, i int) error {
			patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, i+1)
			_, err := w.client.AppsV1().ReplicaSets("default").Patch(ctx, sets[i%len(sets)].Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		})
		updated := w.cluster.Server.CPU() - before
		result.add(way.name, ownerAgents, requests, atStart/1000, started.Milliseconds(), (tap.bytes()-atStart)/1000, updated.Milliseconds())
		if way.name == "get by name" {
			require.Equal(t, ownerAgents*ownersInUse, len(tap.log()), "each is asked for once, and never again")
		}
		bytes[way.name] = tap.bytes()
		cancel()
		for _, one := range all {
			one.ended()
		}
	}
	t.Logf("\n%s", result)
	require.Less(t, bytes["get by name"], min(bytes["watch per name"], bytes["watch of labels"]))
}

// waiter is one of the running parts of an agent.
type waiter struct{ synced, ended func() }

func askForOwners(ctx context.Context, t *testing.T, config *rest.Config, own []*appsv1.ReplicaSet) []waiter {
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	pods := make([]*corev1.Pod, len(own))
	for i, set := range own {
		pods[i] = newPod(podName(i), "node-1")
		pods[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	s := sources.New("node-1", sources.WithLogger(logr.Discard()), sources.Custom(fixed(pods)))
	who := lookup.New(s, lookup.Owners(client))
	var all sync.WaitGroup
	all.Go(func() { _ = s.Run(ctx) })
	all.Go(func() {
		for range s.Updates() {
		}
	})
	return []waiter{{ended: all.Wait, synced: func() {
		for i, pod := range pods {
			require.Eventually(t, func() bool {
				owner, known := who.Owner(pod)
				return known && owner.Name == own[i].OwnerReferences[0].Name
			}, time.Minute, time.Millisecond)
		}
	}}}
}

// fixed is a source whose pods never change.
type fixed []*corev1.Pod

func (fixed) Name() string           { return "fixed" }
func (fixed) Report() sources.Report { return sources.Report{} }
func (f fixed) Run(ctx context.Context, sink *sources.Sink) error {
	var pods store.Indexer[*corev1.Pod]
	if err := pods.Replace(store.Items(f...), store.At("")); err != nil {
		return err
	}
	sink.Set(pods.Snapshot())
	<-ctx.Done()
	return nil
}

func watchOwnersByName(ctx context.Context, t *testing.T, config *rest.Config, own []*appsv1.ReplicaSet) (all []waiter) {
	// all watches share one connection
	client, err := listwatch.NewRESTClient(config, appsv1.SchemeGroupVersion)
	require.NoError(t, err)
	for _, set := range own {
		all = append(all, watchOwners(ctx, t, client, listwatch.Fields(fields.OneTermEqualSelector("metadata.name", set.Name))))
	}
	return all
}

func watchOwnersByLabel(ctx context.Context, t *testing.T, config *rest.Config, own []*appsv1.ReplicaSet) []waiter {
	client, err := listwatch.NewRESTClient(config, appsv1.SchemeGroupVersion)
	require.NoError(t, err)
	var values []string
	for _, set := range own {
		values = append(values, set.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	}
	hashes, err := labels.NewRequirement(appsv1.DefaultDeploymentUniqueLabelKey, selection.In, values)
	require.NoError(t, err)
	return []waiter{watchOwners(ctx, t, client, listwatch.Labels(labels.NewSelector().Add(*hashes)))}
}

func watchOwners(ctx context.Context, t *testing.T, client rest.Interface, which listwatch.Option) waiter {
	objects := store.NewIndexer[*metav1.PartialObjectMetadata]()
	r := reflector.New(listwatch.FromClient[metav1.PartialObjectMetadata](client, "replicasets", listwatch.InNamespace("default"), which), objects)
	var ended sync.WaitGroup
	ended.Go(func() { _ = r.Run(ctx) })
	return waiter{ended: ended.Wait, synced: func() { require.NoError(t, r.WaitSynced(ctx)) }}
}

// replicaSet is the i-th one, of a Deployment that has several.
func replicaSet(i int) *appsv1.ReplicaSet {
	hash := fmt.Sprintf("%010d", i)
	pod := newPod("", "")
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	above := metav1.ObjectMeta{Name: fmt.Sprint("web-", i/3), UID: types.UID(fmt.Sprint("uid-of-web-", i/3))}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: above.Name + "-" + hash, Labels: pod.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&above, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
}

// TestOwnersWithTheirRights: the verb get of the two resources is enough on a real server, and
// without it the status names the resource and the verb.
func TestOwnersWithTheirRights(t *testing.T) {
	w := newWorld(t, cluster.Start(t))
	set, err := w.client.AppsV1().ReplicaSets("default").Create(t.Context(), replicaSet(0), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := newPod("web", "node-1")
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	run := func(check func(*sources.Sources, *lookup.Lookup) bool) {
		client, err := listwatch.NewRESTClient(w.cluster.Server.Config(cluster.Nobody), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		s := sources.New("node-1", sources.WithLogger(logr.Discard()), sources.Custom(fixed{pod}))
		who := lookup.New(s, lookup.Owners(client))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-s.Updates()
		require.Eventually(t, func() bool { return check(s, who) }, 30*time.Second, 5*time.Millisecond, "%+v", s.Status())
		cancel()
		require.NoError(t, <-ended)
	}
	run(func(s *sources.Sources, _ *lookup.Lookup) bool {
		status := s.Status()[1]
		return len(status.Problems) == 1 && status.Problems[0].Error() ==
			"replicasets.apps: forbidden: the agent needs the verb get of it; the owners of 1 are not known"
	})
	w.permit("owners", cluster.NobodyUser,
		rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"replicasets"}},
		rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"batch"}, Resources: []string{"jobs"}})
	require.Eventually(t, func() bool { // the server has read the role
		client, err := listwatch.NewRESTClient(w.cluster.Server.Config(cluster.Nobody), appsv1.SchemeGroupVersion)
		require.NoError(t, err)
		return client.Get().Namespace("default").Resource("replicasets").Name(set.Name).Do(t.Context()).Error() == nil
	}, 30*time.Second, 50*time.Millisecond)
	run(func(_ *sources.Sources, who *lookup.Lookup) bool {
		owner, known := who.Owner(pod)
		return known && owner.Kind == "Deployment" && owner.Name == "web-0"
	})
}
