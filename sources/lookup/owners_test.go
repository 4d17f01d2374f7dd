package lookup_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

// workloads is an API server with ReplicaSets and Jobs.
type workloads struct {
	t      *testing.T
	sets   *listwatchtest.Collection[*appsv1.ReplicaSet]
	jobs   *listwatchtest.Collection[*batchv1.Job]
	client rest.Interface
}

func newWorkloads(t *testing.T) *workloads {
	sets := listwatchtest.New(t, listwatchtest.Of[*appsv1.ReplicaSet]())
	jobs := listwatchtest.Serve(sets.Server(), listwatchtest.Of[*batchv1.Job]())
	client, err := listwatch.NewRESTClient(sets.Server().Config(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return &workloads{t, sets, jobs, client}
}

// set makes a ReplicaSet; above is the name of its Deployment, or empty.
func (w *workloads) set(name, above string) metav1.OwnerReference {
	s := w.sets.Create(&appsv1.ReplicaSet{ObjectMeta: metaOf(name, "Deployment", above)})
	return controllerRef("apps/v1", "ReplicaSet", name, s.UID)
}

// job makes a Job; above is the name of its CronJob, or empty.
func (w *workloads) job(name, above string) metav1.OwnerReference {
	j := w.jobs.Create(&batchv1.Job{ObjectMeta: metaOf(name, "CronJob", above)})
	return controllerRef("batch/v1", "Job", name, j.UID)
}

func setOf(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metaOf(name, "", "")}
}

func jobOf(name string) *batchv1.Job { return &batchv1.Job{ObjectMeta: metaOf(name, "", "")} }

// asked is the number of requests so far.
func (w *workloads) asked() int { return len(w.sets.Server().Requests()) }

func metaOf(name, kind, above string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name}
	if above != "" {
		m.OwnerReferences = []metav1.OwnerReference{controllerRef("v1", kind, above, types.UID("uid-of-"+above))}
	}
	return m
}

func controllerRef(version, kind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: &yes}
}

func ownedBy(owner metav1.OwnerReference) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{owner} }
}

// owner is what Owner says, in a line.
func owner(s *lookup.Lookup, pod *corev1.Pod) string {
	owner, known := s.Owner(pod)
	text := "none"
	if owner.Kind != "" {
		text = owner.Kind + " " + owner.Name
	}
	if !known {
		text += "?"
	}
	return text
}

// running is a node that asks the API server for owners.
func (w *workloads) running(api *scripted, options ...lookup.Option) *node {
	return w.keeping(api, nil, options...)
}

// keeping is running with further options of its sources.
func (w *workloads) keeping(api *scripted, more []sources.Option, options ...lookup.Option) *node {
	more = append(more, sources.Custom(api), sources.WithLogger(logr.Discard()))
	return start(w.t, append(options, lookup.Owners(w.client)), more...)
}

// ownersStatus is the entry of the owners.
func ownersStatus(s *node) sources.Status {
	all := s.Status()
	return all[len(all)-1]
}

// TestOwners: the workload of each pod, by one request for each ReplicaSet and Job in use.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		web, bare := w.set("web-1", "web"), w.set("bare", "")
		nightly := w.job("nightly-1", "nightly")
		w.set("elsewhere", "other") // which no pod of the node has
		gone := controllerRef("apps/v1", "ReplicaSet", "gone", "uid-gone")
		again := w.set("again", "new")
		again.UID = "an earlier one" // of the same name
		s := w.running(api)
		pods := map[*corev1.Pod]string{
			podOf("a", ownedBy(web)):     "Deployment web",
			podOf("b", ownedBy(web)):     "Deployment web",
			podOf("c", ownedBy(bare)):    "ReplicaSet bare",
			podOf("d", ownedBy(nightly)): "CronJob nightly",
			podOf("e", ownedBy(gone)):    "ReplicaSet gone?",
			podOf("f", ownedBy(again)):   "ReplicaSet again?",
			podOf("g", ownedBy(controllerRef("apps/v1", "DaemonSet", "agent", "1"))):                "DaemonSet agent",
			podOf("h", ownedBy(controllerRef("apps.kruise.io/v1", "ReplicaSet", "of others", "2"))): "ReplicaSet of others",
			podOf("i"): "none",
		}
		var all []*corev1.Pod
		for pod := range pods {
			all = append(all, pod)
		}
		accept := ""
		w.jobs.Intercept(func(rw http.ResponseWriter, r *http.Request, server http.Handler) {
			accept = r.Header.Get("Accept")
			server.ServeHTTP(rw, r)
		}, listwatchtest.On(listwatchtest.Get))
		before := w.asked()
		api.set(t, all...)
		synctest.Wait()
		for pod, want := range pods {
			require.Equal(t, want, owner(s.Lookup, pod))
		}
		// gone and again are missing in the cache and in etcd, and their pods have no version.
		require.Equal(t, before+7, w.asked())
		require.True(t, ownersStatus(s).Seen)
		require.Empty(t, ownersStatus(s).Problems)
		require.WithinDuration(t, time.Now(), ownersStatus(s).LastContact, 0)
		api.set(t, all...)
		time.Sleep(24 * time.Hour)
		require.Equal(t, before+7, w.asked(), "an owner is asked for once")
		require.Contains(t, accept, "as=PartialObjectMetadata;")
		s.stop()
		unasked := lookup.New(sources.New("node-1", sources.Custom(api)))
		for pod, want := range pods {
			if strings.Contains("a b c d e f", pod.Name) {
				require.True(t, strings.HasSuffix(owner(unasked, pod), "?"), pod.Name)
			} else {
				require.Equal(t, want, owner(unasked, pod))
			}
		}
	})
}

// TestOwnersDoNotHoldUp: pods are told and found while the API server does not answer.
func TestOwnersDoNotHoldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		pod := podOf("a", ownedBy(w.set("web-1", "web")))
		release := make(chan struct{})
		w.sets.Intercept(func(rw http.ResponseWriter, r *http.Request, server http.Handler) {
			<-release
			server.ServeHTTP(rw, r)
		}, listwatchtest.On(listwatchtest.Get))
		s := w.running(api)
		defer s.stop()
		api.set(t, pod)
		synctest.Wait()
		require.NotNil(t, s.ByUID(pod.UID))
		require.True(t, s.SafeToPrune(sources.APISource))
		<-s.Synced()
		require.NoError(t, s.Ready(time.Minute))
		require.Equal(t, "ReplicaSet web-1?", owner(s.Lookup, pod))
		require.False(t, ownersStatus(s).Seen)
		close(release)
		synctest.Wait()
		require.Equal(t, "Deployment web", owner(s.Lookup, pod))
	})
}

// TestOwnersGoWithTheirPods, and stay with an ended pod that is kept.
func TestOwnersGoWithTheirPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		a := podOf("a", ownedBy(w.set("web-1", "web")))
		b := podOf("b", ownedBy(w.set("db-1", "db")))
		s := w.running(api, lookup.KeepEnded(time.Minute))
		defer s.stop()
		api.set(t, a, b)
		synctest.Wait()
		api.set(t, b)
		time.Sleep(time.Minute)
		require.Equal(t, "Deployment web", owner(s.Lookup, s.ByUID(a.UID).Pod))
		time.Sleep(time.Second)
		api.set(t, b, podOf("c")) // with which ended pods are dropped
		synctest.Wait()
		require.Equal(t, "ReplicaSet web-1?", owner(s.Lookup, a))
		require.Equal(t, "Deployment db", owner(s.Lookup, b))
		asked := w.asked()
		api.set(t, a, b)
		synctest.Wait()
		require.Equal(t, "Deployment web", owner(s.Lookup, a))
		require.Equal(t, asked+1, w.asked())
	})
}

// TestOwnersAreAskedForEverLater: within a second, and up to half a minute; the status says why,
// and nothing that the server wrote.
func TestOwnersAreAskedForEverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		pod := podOf("a", ownedBy(w.set("web-1", "web")))
		fault := w.sets.Intercept(func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(rw, "password", http.StatusBadGateway)
		}, listwatchtest.On(listwatchtest.Get), listwatchtest.UntilLifted())
		s := w.running(api)
		defer s.stop()
		before := w.asked()
		api.set(t, pod)
		time.Sleep(4 * time.Second)
		require.GreaterOrEqual(t, w.asked(), before+3, "at once, within a second and within two more")
		time.Sleep(time.Hour)
		require.InDelta(t, before+245, w.asked(), 45, "every 15 s on average")
		require.EqualError(t, errors.Join(ownersStatus(s).Problems...),
			"replicasets.apps: cannot be read: server error; the owners of 1 are not known")
		_, reason := s.Guess(pod)
		require.EqualError(t, reason, "replicasets.apps: cannot be read: server error")
		require.NoError(t, s.Ready(time.Minute))
		fault.Lift()
		time.Sleep(40 * time.Second)
		require.Equal(t, "Deployment web", owner(s.Lookup, pod))
		require.Empty(t, ownersStatus(s).Problems)

		w.sets.Fail(listwatchtest.Get, errors.New("away"))
		api.set(t)
		api.set(t, pod) // which is to be asked for again in a second
		synctest.Wait()
		api.set(t)
		api.set(t, pod)
		before = w.asked()
		time.Sleep(2 * time.Second)
		require.Equal(t, "Deployment web", owner(s.Lookup, pod))
		time.Sleep(time.Hour)
		require.Equal(t, before+1, w.asked(), "it was asked for twice")
	})
}

// TestForbiddenOwners: one request every ten minutes, however many owners there are, and none of
// them holds up Jobs.
func TestForbiddenOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		var pods []*corev1.Pod
		for i := range 50 {
			pods = append(pods, podOf(fmt.Sprint("a", i), ownedBy(w.set(fmt.Sprint("web-", i), "web"))))
		}
		job := podOf("job", ownedBy(w.job("nightly-1", "nightly")))
		fault := w.sets.Fail(listwatchtest.Get, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "x", nil), listwatchtest.UntilLifted())
		s := w.running(api)
		defer s.stop()
		before := w.asked()
		api.set(t, append(pods, job)...)
		synctest.Wait()
		require.Equal(t, before+2, w.asked())
		require.Equal(t, "CronJob nightly", owner(s.Lookup, job))
		time.Sleep(time.Hour - time.Second)
		require.Equal(t, before+7, w.asked())
		require.EqualError(t, errors.Join(ownersStatus(s).Problems...),
			"replicasets.apps: forbidden: the agent needs the verb get of it; the owners of 50 are not known")
		require.NoError(t, s.Ready(time.Minute))
		fault.Lift()
		time.Sleep(10 * time.Minute)
		for _, pod := range pods {
			require.Equal(t, "Deployment web", owner(s.Lookup, pod))
		}
		require.Empty(t, ownersStatus(s).Problems)
	})
}

// TestOwnersSurviveARestart: a checkpoint has those in use, and no request is made for them again.
func TestOwnersSurviveARestart(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkloads(t)
		a := podOf("a", ownedBy(w.set("web-1", "web")))
		b := podOf("b", ownedBy(w.set("bare", "")))
		c := podOf("c", ownedBy(w.set("old-1", "old")))
		run := func(test func(*node, *scripted)) {
			api := newScripted(sources.APISource)
			s := w.keeping(api, []sources.Option{sources.Checkpoint(folder)})
			test(s, api)
			s.stop()
		}
		run(func(_ *node, api *scripted) {
			api.set(t, a, b, c)
			synctest.Wait()
		})
		w.sets.Fail(listwatchtest.Get, errors.New("away"), listwatchtest.UntilLifted())
		asked := w.asked()
		run(func(*node, *scripted) {}) // ends before any source is read: nothing is lost
		run(func(s *node, api *scripted) {
			api.set(t, a, b)
			synctest.Wait()
			require.Equal(t, "Deployment web", owner(s.Lookup, a))
			require.Equal(t, "ReplicaSet bare", owner(s.Lookup, b))
			require.Equal(t, "ReplicaSet old-1?", owner(s.Lookup, c))
		})
		require.Equal(t, asked, w.asked())
		run(func(s *node, api *scripted) {
			api.set(t, a, c)
			synctest.Wait()
			require.Equal(t, "Deployment web", owner(s.Lookup, a))
			require.Equal(t, "ReplicaSet old-1?", owner(s.Lookup, c), "it was in use no more")
		})
	})
}

// TestOwnersAgainstAModel: after any changes, every pod has its workload, and nothing else is held.
func TestOwnersAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		w := newWorkloads(t)
		all := []*scripted{newScripted("a"), newScripted("b")}
		s := w.keeping(all[0], []sources.Option{sources.Custom(all[1])})
		defer s.stop()
		var refs []metav1.OwnerReference
		for i := range 5 {
			refs = append(refs, w.set(fmt.Sprint("set-", i), fmt.Sprint("above-", i)))
		}
		var faults []*listwatchtest.Fault
		defer func() {
			for _, fault := range faults { // the last ones may have met no request
				fault.Lift()
			}
		}()
		for range 200 {
			source := all[random.IntN(2)]
			var pods []*corev1.Pod
			for name := range 6 {
				if random.IntN(2) == 0 {
					pods = append(pods, podOf(fmt.Sprint("p", name), ownedBy(refs[random.IntN(len(refs))])))
				}
			}
			if random.IntN(4) == 0 {
				faults = append(faults, w.sets.Fail(listwatchtest.Get, errors.New("away"), listwatchtest.Times(random.IntN(3)+1)))
			}
			source.set(t, pods...)
			if random.IntN(2) == 0 {
				continue // the requests overlap the next change
			}
			for _, fault := range faults {
				fault.Lift()
			}
			time.Sleep(5 * time.Minute) // the longest time between two requests
			used := map[string]bool{}
			for _, p := range s.Merged() {
				require.Equal(t, "Deployment "+strings.Replace(p.Pod.OwnerReferences[0].Name, "set", "above", 1), owner(s.Lookup, p.Pod))
				used[p.Pod.OwnerReferences[0].Name] = true
			}
			for _, ref := range refs {
				_, known := s.Owner(podOf("x", ownedBy(ref)))
				require.Equal(t, used[ref.Name], known, ref.Name)
			}
		}
	})
}

func TestOwnersAllocateNothing(t *testing.T) {
	w, api := newWorkloads(t), newScripted(sources.APISource)
	pod := podOf("a", ownedBy(w.set("web-1", "web")))
	r := start(t, []lookup.Option{lookup.Owners(w.client)}, sources.Custom(api))
	api.set(t, pod)
	require.Eventually(t, func() bool { return owner(r.Lookup, pod) == "Deployment web" }, patience, time.Millisecond)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, known := r.Owner(pod); !known {
			panic("not known")
		}
	}))
}

func TestOwnersWithoutAClient(t *testing.T) {
	s := sources.New("node-1", sources.File(t.TempDir()))
	lookup.New(s, lookup.Owners(nil))
	require.ErrorContains(t, s.Run(t.Context()), "Owners was given no client")
}
