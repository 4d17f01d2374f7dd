package reflector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// limited is a client of the server with a limiter of so many requests a second, and a burst of
// one.
func limited(t *testing.T, server *listwatchtest.Server, qps float32) rest.Interface {
	config := server.Config()
	config.QPS, config.Burst = qps, 1
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return client
}

// TestAListWaitsForTheClientsLimiter: the time for an answer begins when the request is sent, and
// Status says what it waits for.
func TestAListWaitsForTheClientsLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.NewServer(t)
		pods := listwatchtest.Serve(server, listwatchtest.Pods())
		pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		client := limited(t, server, 0.05)
		require.True(t, client.GetRateLimiter().TryAccept(), "the program has used the burst")
		began := time.Now()
		r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.WithoutWatchList()),
			store.NewIndexer[*corev1.Pod](), reflector.WithLiveness(8*time.Second))
		go func() { _ = r.Run(t.Context()) }()

		time.Sleep(time.Second / 2)
		synctest.Wait()
		require.NoError(t, r.Status().Err, "a short wait is the limiter's daily work")
		require.Equal(t, reflector.Waiting, r.Status().Phase)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s := r.Status()
		require.Equal(t, reflector.ClientThrottled, s.Class)
		require.Equal(t, began, s.Since)
		require.ErrorContains(t, s.Err, "rate limiter (rest.Config.QPS is 0.05): raise QPS and Burst")
		require.Equal(t, reflector.ClientThrottled, reflector.Classify(s.Err))
		require.Equal(t, reflector.NotSynced, s.Verdict(0).Class)
		require.ErrorContains(t, s.Verdict(0).Err, "(client_throttled: ")
		require.Zero(t, s.Failures)

		<-r.Synced()
		require.WithinDuration(t, began.Add(20*time.Second), time.Now(), time.Millisecond)
		synctest.Wait()
		s = r.Status()
		require.NoError(t, s.Err)
		require.Equal(t, reflector.Watching, s.Phase, "the watch does not wait")
		require.Zero(t, s.Failures)
	})
}

// TestAProofWaitsForTheClientsLimiter: a proof that waits is no failure of the copy. It is one of
// the moment at which it was sent.
func TestAProofWaitsForTheClientsLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.NewServer(t)
		listwatchtest.Serve(server, listwatchtest.Pods())
		client := limited(t, server, 0.005)
		limiter := client.GetRateLimiter()
		require.True(t, limiter.TryAccept())
		r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), store.NewIndexer[*corev1.Pod]())
		began := time.Now()
		go func() { _ = r.Run(t.Context()) }()
		<-r.Synced()
		require.Zero(t, time.Since(began), "a watch list does not wait")
		time.Sleep(190 * time.Second)
		synctest.Wait()
		s := r.Status()
		require.Equal(t, reflector.OK, s.Class)
		require.Equal(t, reflector.Watching, s.Phase)
		require.Equal(t, reflector.ClientThrottled, reflector.Classify(s.ProbeErr))
		require.ErrorContains(t, s.Verdict(3*time.Minute).Err, "the last probe: a LIST has waited since")
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s = r.Status()
		require.NoError(t, s.Verdict(time.Minute).Err)
		require.WithinRange(t, s.ProvenAt, began.Add(200*time.Second), began.Add(202*time.Second))
	})
}
