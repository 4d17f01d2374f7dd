package lookup_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

// atPaceOfClientGo has the client take the rate of a rest.Config that names none: five a second.
func (w *workloads) atPaceOfClientGo() {
	config := w.sets.Server().Config()
	config.QPS = 0
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(w.t, err)
	w.client = client
}

// slowly has each request for a Job take a time on its way to the server.
func (w *workloads) slowly(latency time.Duration) {
	w.jobs.Intercept(func(rw http.ResponseWriter, r *http.Request, server http.Handler) {
		time.Sleep(latency)
		server.ServeHTTP(rw, r)
	}, listwatchtest.On(listwatchtest.Get, listwatchtest.List), listwatchtest.UntilLifted())
}

const (
	goneJobs  = 300
	cronJobs  = 7
	eachAfter = 25 * time.Millisecond // a Job and its pod
)

// runJobs tells one pod after the other, and deletes the Job of each right after it. It returns
// what the owners of the pods should be.
func (w *workloads) runJobs(s *node, api *scripted) map[*corev1.Pod]string {
	want := map[*corev1.Pod]string{}
	var all []*corev1.Pod
	for i := range goneJobs {
		cron := fmt.Sprint("nightly-", i%cronJobs)
		name := fmt.Sprintf("%s-%d", cron, time.Now().Unix()/60-int64(i/cronJobs))
		ref := w.job(name, cron)
		pod := podOf(name, ownedBy(ref), created(time.Now().Unix()))
		// A pod is written after its Job.
		pod.ResourceVersion = w.jobs.Create(jobOf(fmt.Sprint("other-", i))).ResourceVersion
		all, want[pod] = append(all, pod), "CronJob "+cron
		api.set(w.t, all...)
		w.jobs.Remove(jobOf(name)) // a deletion without a policy orphans its pods first
		time.Sleep(eachAfter)
	}
	time.Sleep(30 * time.Second)
	synctest.Wait()
	return want
}

// told counts the pods whose owner is known and right, known and wrong, or not known; and of these,
// those whose guess is right.
func told(s *lookup.Lookup, want map[*corev1.Pod]string) (right, wrong, unknown, guessed int) {
	for pod, name := range want {
		guess, _ := s.Guess(pod)
		switch text := owner(s, pod); {
		case text == name:
			right++
		case !strings.HasSuffix(text, "?"):
			wrong++
		case guess.Kind+" "+guess.Name == name:
			guessed++
			fallthrough
		default:
			unknown++
		}
	}
	return right, wrong, unknown, guessed
}

// TestOwnersOfJobsThatAreGone: each Job is deleted right after its pod, before it can be asked for.
// The past of the API server has the controllers of all. Without the right to it, none is told as
// known, and all are guessed.
func TestOwnersOfJobsThatAreGone(t *testing.T) {
	for name, row := range map[string]struct {
		forbidden   bool
		latency     time.Duration
		right, rest int
	}{
		"with the verb list":    {latency: 40 * time.Millisecond, right: goneJobs},
		"without the verb list": {latency: 40 * time.Millisecond, forbidden: true, rest: goneJobs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, api := newWorkloads(t), newScripted(sources.APISource)
				w.atPaceOfClientGo()
				if row.forbidden {
					w.jobs.Fail(listwatchtest.List, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil), listwatchtest.UntilLifted())
				}
				w.slowly(row.latency)
				s := w.running(api)
				defer s.stop()
				want := w.runJobs(s, api)
				right, wrong, unknown, guessed := told(s.Lookup, want)
				require.Equal(t, []int{row.right, 0, row.rest, row.rest}, []int{right, wrong, unknown, guessed})
				require.True(t, ownersStatus(s).Seen)
				require.Empty(t, ownersStatus(s).Problems)
				if row.forbidden {
					_, reason := s.Guess(anyOf(want))
					require.ErrorContains(t, reason, "is gone: the agent needs the verb list of it to find it in the past")
				}
			})
		})
	}
}

// TestOwnersKeepUpWithJobs: at the pace of client-go's default, 300 Jobs would take a minute. The
// newest pods are asked for first, so each Job is found while it is there, for a tenth of a second.
func TestOwnersKeepUpWithJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		w.atPaceOfClientGo()
		w.slowly(40 * time.Millisecond)
		s := w.running(api)
		defer s.stop()
		want := map[*corev1.Pod]string{}
		var all []*corev1.Pod
		for i := range goneJobs {
			cron := fmt.Sprint("nightly-", i%cronJobs)
			name := fmt.Sprintf("%s-%d", cron, i)
			pod := podOf(name, ownedBy(w.job(name, cron)), created(int64(i)))
			all, want[pod] = append(all, pod), "CronJob "+cron
			api.set(t, all...)
			time.AfterFunc(100*time.Millisecond, func() { w.jobs.Delete(jobOf(name)) })
			time.Sleep(eachAfter)
		}
		time.Sleep(time.Second)
		right, wrong, _, _ := told(s.Lookup, want)
		require.Equal(t, []int{goneJobs, 0}, []int{right, wrong})
	})
}

// TestAReplicaSetThatIsGone is known by the past of the API server, or guessed by its label, with
// the reason.
func TestAReplicaSetThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		ref := w.set("web-5d4f8c7b9", "web")
		then := w.sets.Create(setOf("later")).ResourceVersion
		w.sets.Delete(setOf("web-5d4f8c7b9"))
		hashed := func(p *corev1.Pod) { p.Labels = map[string]string{"pod-template-hash": "5d4f8c7b9"} }
		known, late, never := podOf("known", ownedBy(ref), version(then)), podOf("late", hashed), podOf("never", hashed)
		ref.UID = "another one"
		ownedBy(ref)(late)
		late.ResourceVersion = w.sets.Create(setOf("other")).ResourceVersion
		ref.UID = "a third one"
		ownedBy(ref)(never)
		s := w.running(api)
		defer s.stop()
		api.set(t, known, late, never)
		synctest.Wait()
		require.Equal(t, "Deployment web", owner(s.Lookup, known))
		guess, reason := s.Guess(known)
		require.Zero(t, guess)
		require.NoError(t, reason)
		for pod, why := range map[*corev1.Pod]string{
			late:  "it was gone before its pod was seen",
			never: "its pod has no resource version, by which to find it in the past",
		} {
			require.Equal(t, "ReplicaSet web-5d4f8c7b9?", owner(s.Lookup, pod))
			guess, reason := s.Guess(pod)
			require.Equal(t, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, guess)
			require.EqualError(t, reason, "replicasets.apps default/web-5d4f8c7b9 is gone: "+why)
		}
		asked := w.asked()
		api.set(t, known, late, never, podOf("more", ownedBy(ref)))
		time.Sleep(time.Hour)
		require.Equal(t, asked, w.asked(), "one that is gone never comes back")
	})
}

// TestGuesses: names tell a workload only where a controller of Kubernetes makes such names.
func TestGuesses(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	minutes := func(at time.Time) string { return fmt.Sprint("x-", at.Unix()/60) }
	l := lookup.New(sources.New("node-1"))
	for _, row := range []struct{ version, kind, name, hash, want string }{
		{"batch/v1", "Job", minutes(now), "", "CronJob x"},
		{"batch/v1", "Job", "a-b-" + minutes(now.AddDate(0, -11, 0)), "", "CronJob a-b-x"},
		{"batch/v1", "Job", minutes(now.Add(time.Minute)), "", "CronJob x"},
		{"batch/v1", "Job", minutes(now.Add(time.Hour)), "", " "},
		{"batch/v1", "Job", minutes(now.AddDate(-2, 0, 0)), "", " "},
		{"batch/v1", "Job", "import-42", "", " "},
		{"batch/v1", "Job", "import-", "", " "},
		{"batch/v1", "Job", minutes(now)[1:], "", " "},
		{"batch/v1", "Job", "import", "", " "},
		{"apps/v1", "ReplicaSet", "web-5d4f8c7b9", "5d4f8c7b9", "Deployment web"},
		{"apps/v1", "ReplicaSet", "web-5d4f8c7b9", "other", " "},
		{"apps/v1", "ReplicaSet", "web-", "", " "},
		{"apps/v1", "ReplicaSet", "web", "web", " "},
		{"apps/v1", "StatefulSet", "web-5d4f8c7b9", "5d4f8c7b9", " "}, // which is known itself
	} {
		pod := podOf("p", ownedBy(controllerRef(row.version, row.kind, row.name, "1")), created(now.Unix()))
		pod.Labels = map[string]string{"pod-template-hash": row.hash}
		guess, reason := l.Guess(pod)
		require.Equal(t, row.want, guess.Kind+" "+guess.Name, row.name)
		require.Empty(t, guess.UID)
		if row.kind == "StatefulSet" {
			require.NoError(t, reason)
		} else {
			require.EqualError(t, reason, "the API server is not asked: give New the option Owners")
		}
	}
	guess, _ := l.Guess(podOf("p", ownedBy(controllerRef("batch/v1", "Job", minutes(now), "1"))))
	require.Zero(t, guess, "a pod without a time of creation")
}

// TestASickServerIsLeftAlone: while nothing is answered, one request at a time is made, ever more
// seldom, however many owners there are. Half a minute after its return, all are known.
func TestASickServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		pods := map[*corev1.Pod]string{}
		var all []*corev1.Pod
		for i := range 200 {
			pod := podOf(fmt.Sprint("p", i), ownedBy(w.set(fmt.Sprint("web-", i), fmt.Sprint("web", i))))
			all, pods[pod] = append(all, pod), fmt.Sprint("Deployment web", i)
		}
		fault := w.sets.Fail(listwatchtest.Get, errors.New("away"), listwatchtest.UntilLifted())
		s := w.running(api)
		defer s.stop()
		before := w.asked()
		api.set(t, all...)
		time.Sleep(time.Hour)
		require.InDelta(t, before+245, w.asked(), 45, "every 15 s on average")
		fault.Lift()
		time.Sleep(40 * time.Second)
		right, _, _, _ := told(s.Lookup, pods)
		require.Equal(t, len(pods), right)

		w.sets.Fail(listwatchtest.Get, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Details: &metav1.StatusDetails{RetryAfterSeconds: 7},
		}})
		before = w.asked()
		api.set(t, append(all, podOf("new", ownedBy(w.set("new-1", "new"))))...)
		synctest.Wait()
		require.Equal(t, before+1, w.asked())
		time.Sleep(7*time.Second - time.Millisecond)
		require.Equal(t, before+1, w.asked(), "the server asked for seven seconds")
		time.Sleep(2 * time.Second)
		require.Equal(t, before+2, w.asked())
	})
}

// anyOf is one of the pods.
func anyOf(pods map[*corev1.Pod]string) *corev1.Pod {
	for pod := range pods {
		return pod
	}
	return nil
}
