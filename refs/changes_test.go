package refs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
)

// told describes a change.
func told(change refs.Change[*corev1.Secret]) string {
	value := func(obj *corev1.Secret) string {
		if obj == nil {
			return "nothing"
		}
		return string(obj.Data["value"])
	}
	return fmt.Sprintf("%s: %s -> %s, of %v", change.Name.Name, value(change.Old), value(change.New), change.Owners)
}

// TestChangesNameTheirOwners: a reader is told what exists, each change, and what nothing refers to
// any more.
func TestChangesNameTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put("tls", "1")
		r.put("db", "1")
		r.SetOwner("pod2", refs.In(ns, "tls", "db"))
		r.SetOwner("pod1", refs.In(ns, "tls"))
		require.Equal(t, "1", r.value("tls"))
		var all []string
		wait := make(chan struct{}) // the reader takes one change for each
		go func() {
			for change := range r.Changes(t.Context()) {
				<-wait
				all = append(all, told(change))
			}
		}()
		steps := func(n int) []string {
			for range n {
				wait <- struct{}{}
			}
			synctest.Wait()
			defer func() { all = nil }()
			return all
		}
		require.ElementsMatch(t, []string{"tls: nothing -> 1, of [pod1 pod2]", "db: nothing -> 1, of [pod2]"}, steps(2))
		r.put("tls", "2")
		require.Equal(t, []string{"tls: 1 -> 2, of [pod1 pod2]"}, steps(1))

		r.put("db", "2") // the reader has taken it, and waits
		synctest.Wait()
		for i := range 100 {
			r.put("tls", fmt.Sprint(i+3))
			synctest.Wait()
		}
		r.put("db", "3")
		synctest.Wait()
		r.remove("db")
		synctest.Wait()
		require.Equal(t, []string{"db: 1 -> 2, of [pod2]", "tls: 2 -> 102, of [pod1 pod2]", "db: 2 -> nothing, of [pod2]"}, steps(3))

		r.SetOwner("pod2", nil)
		r.SetOwner("pod1", nil)
		require.Equal(t, []string{"tls: 102 -> nothing, of []"}, steps(1))
		close(wait)
		r.SetOwner("pod3", refs.In(ns, "tls"))
		synctest.Wait()
		require.Equal(t, []string{"tls: nothing -> 102, of [pod3]"}, all)
	})
}

// TestReadersKeepWatchesOpen: while somebody is told the changes, no watch is idle.
func TestReadersKeepWatchesOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithIdle(time.Minute))
		r.put("tls", "1")
		r.SetOwner("pod", refs.In(ns, "tls"))
		time.Sleep(5 * time.Minute)
		r.server.Server().AwaitWatches(0)
		r.put("tls", "2")
		var all []string
		go func() {
			for change := range r.Changes(t.Context()) {
				all = append(all, told(change))
			}
		}()
		time.Sleep(5 * time.Minute)
		r.put("tls", "3")
		synctest.Wait()
		require.Equal(t, []string{"tls: nothing -> 1, of [pod]", "tls: 1 -> 2, of [pod]", "tls: 2 -> 3, of [pod]"}, all)
	})
}

// TestOwnWritesAreReadBack: a write that was acknowledged is in the next Get, whatever the watch
// has brought so far.
func TestOwnWritesAreReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithIdle(time.Minute))
		r.SetOwner("pod", refs.In(ns, "tls"))
		r.server.Delay(3*time.Second, listwatchtest.Times(2))
		for i := range 3 {
			written := r.put("tls", fmt.Sprint(i))
			require.NoError(t, r.WaitFor(t.Context(), written))
			require.Equal(t, fmt.Sprint(i), r.value("tls"))
			if i == 1 {
				time.Sleep(5 * time.Minute) // nothing follows the name now
			}
		}
		last := r.put("tls", "last")
		require.ErrorContains(t, r.WaitForDeletion(within(t, time.Second), last), "deadline")
		r.remove("tls")
		require.NoError(t, r.WaitForDeletion(t.Context(), last))
		require.ErrorIs(t, r.WaitFor(t.Context(), r.put("other", "1")), refs.ErrNotReferred)
		require.ErrorContains(t, r.WaitFor(t.Context(), secret("tls", "")), "resource version")
	})
}

// TestTheFirstReadIsOneRequest: a Get or a wait that comes while a name is read for the first time
// needs no other request, even if the object was written after that one.
func TestTheFirstReadIsOneRequest(t *testing.T) {
	for name, read := range map[string]func(*rig, *corev1.Secret) error{
		"Get":     func(r *rig, _ *corev1.Secret) error { _, err := r.Get(r.t.Context(), ns, "tls"); return err },
		"WaitFor": func(r *rig, obj *corev1.Secret) error { return r.WaitFor(r.t.Context(), obj) },
		"WaitForDeletion": func(r *rig, obj *corev1.Secret) error {
			r.remove("tls")
			return r.WaitForDeletion(r.t.Context(), obj)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.slow(time.Second)
				r.SetOwner("pod", refs.In(ns, "tls"))
				require.Equal(t, 1, r.requests())
				written := r.put("tls", "1")
				began := time.Now()
				require.NoError(t, read(r, written))
				require.Equal(t, time.Second, time.Since(began), "one round trip")
				require.Equal(t, 1, r.requests())
			})
		})
	}
}

// TestOwnersOfAnInformer: the pods of an informer are the owners.
func TestOwnersOfAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.NewServer(t)
		secrets := listwatchtest.Serve(server, listwatchtest.Of[*corev1.Secret]())
		bound := listwatchtest.Serve(server, listwatchtest.Pods())
		client, err := listwatch.NewRESTClient(server.Config(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		pods := informer.New(bound.ListerWatcher())
		r := refs.New(refs.FromClient[corev1.Secret](client, "secrets"), refs.FromOwners(pods, refs.SecretsOf))
		go func() { require.NoError(t, pods.Run(t.Context())) }()
		go func() { require.NoError(t, r.Run(t.Context())) }()

		secrets.Create(secret("tls", "1"))
		pod := bound.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Spec:       corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "tls"}}},
		})
		synctest.Wait()
		require.Equal(t, []types.UID{pod.UID}, r.Owners(ns, "tls"))
		obj, err := r.Get(t.Context(), ns, "tls")
		require.NoError(t, err)
		require.Equal(t, "1", string(obj.Data["value"]))
		sent := len(server.Requests())
		pod = pod.DeepCopy()
		pod.Labels = map[string]string{"a": "b"}
		pod = bound.Update(pod)
		synctest.Wait()
		_, err = r.Get(t.Context(), ns, "tls")
		require.NoError(t, err)
		require.Len(t, server.Requests(), sent, "a change without other names costs nothing")
		bound.Remove(pod)
		synctest.Wait()
		require.Empty(t, r.Owners(ns, "tls"))
	})
}

// TestHealth: Status counts, and Ready names what is wrong.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newQuietRig(t)
		r.SetOwner("pod", refs.In(ns, "tls", "db"))
		require.ErrorContains(t, r.Ready(time.Minute), "nobody has called Run")
		require.Equal(t, reflector.NotRun, r.Status().Verdict(0).Class)
		require.Equal(t, 2.0, r.samples()["tributary_refs_not_right not_run"])
		r.run()
		r.put("tls", "1")
		r.server.Server().AwaitWatches(2)
		synctest.Wait()
		var probe reflector.Readier = r
		require.NoError(t, probe.Ready(time.Minute))
		require.Equal(t, "2 names of 1 owners, 2 current, 0 idle, 2 watches", r.Status().String())
		r.server.Mute()
		time.Sleep(2 * time.Minute)
		require.ErrorContains(t, r.Ready(time.Minute), "nothing heard for 2m0s, allowed are 1m0s")
		require.Equal(t, reflector.Stale, r.Status().Verdict(time.Minute).Class)
		require.Equal(t, reflector.OK, r.Status().Verdict(0).Class)
		samples := r.samples()
		require.Equal(t, 2.0, samples["tributary_refs_names"])
		require.Equal(t, 2.0, samples["tributary_refs_watches"])
		require.Equal(t, 1.0, samples["tributary_refs_objects"])
		require.Positive(t, samples["tributary_refs_received_bytes_total"])
		r.server.Throttle(time.Hour, listwatchtest.UntilLifted())
		time.Sleep(2 * time.Minute)
		require.ErrorContains(t, r.Ready(time.Hour), "throttled")
		require.Contains(t, r.Status().String(), "server throttled")
		require.Equal(t, reflector.Throttled, r.Status().Verdict(0).Class)
		require.Positive(t, r.samples()["tributary_refs_not_right throttled"])
		r.stop()
		require.Equal(t, reflector.Ended, r.Status().Verdict(0).Class)
	})
}

// samples has the present numbers, by the names and classes.
func (r *rig) samples() map[string]float64 {
	all := map[string]float64{}
	for s := range r.Samples("secrets") {
		all[strings.Join(append([]string{s.Metric.Name}, s.Labels[1:]...), " ")] = s.Value
	}
	return all
}
