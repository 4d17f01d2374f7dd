package reviews_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/internal/pipes"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

// relay is a server of pods behind reviews, in a bubble with its clients.
type relay struct {
	*cluster
	*reviews.Reviews
	server  *apiserver.Server
	pods    *collection.Collection[*corev1.Pod]
	network *pipes.Network
	web     *http.Client
}

// newRelay speaks HTTP/1.1, or HTTP/2 without TLS.
func newRelay(t *testing.T, http2 bool) *relay {
	c := newCluster()
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	r := &relay{cluster: c, Reviews: newReviews(t, c), server: server, network: pipes.New()}
	r.pods = apiserver.Serve(server, builtin.Pods())
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}}}
	pod.Namespace, pod.Name = "ns", "a"
	_, err = r.pods.Create(pod)
	require.NoError(t, err)
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	listener := &http.Server{Handler: r.Handler(server), Protocols: &protocols}
	var serving sync.WaitGroup
	serving.Go(func() { _ = listener.Serve(r.network) })
	transport := &http.Transport{DialContext: r.network.Dial, Protocols: &protocols}
	r.web = &http.Client{Transport: transport}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = listener.Close()
		serving.Wait()
	})
	return r
}

// stream is a watch that has told its first event. It is read to its end.
type stream struct {
	close func() error
	ended chan struct{} // closed when the next fields are set
	rest  []byte
	err   error // the answer is not whole
}

// watch opens a watch.
func (r *relay) watch(t *testing.T, token, query string) *stream {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/pods?watch=1"+query, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := r.web.Do(request)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	body := bufio.NewReader(answer.Body)
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "ADDED")
	s := &stream{close: answer.Body.Close, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.rest, s.err = io.ReadAll(body)
	}()
	return s
}

// isOver reports whether a watch has ended, and fails unless it ended properly.
func (s *stream) isOver(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	select {
	case <-s.ended:
		require.NoError(t, s.err)
		require.Empty(t, s.rest)
		return true
	default:
		return false
	}
}

// endsWithin waits for the proper end of a watch.
func (s *stream) endsWithin(t *testing.T, d time.Duration) {
	t.Helper()
	began := time.Now()
	<-s.ended
	require.LessOrEqual(t, time.Since(began), d)
	require.True(t, s.isOver(t))
}

// overEachProtocol runs a test over those in which a watch may be served.
func overEachProtocol(t *testing.T, test func(t *testing.T, r *relay)) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newRelay(t, false)) })
	})
	t.Run("HTTP/2", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newRelay(t, true)) })
	})
}

// TestAWatchEndsWithItsRight, or with its token, properly and within a minute; those of others go
// on, and cost a question a minute for each user and for each right.
func TestAWatchEndsWithItsRight(t *testing.T) {
	const watches = 30
	overEachProtocol(t, func(t *testing.T, r *relay) {
		var alices, bobs []*stream
		for range watches {
			alices = append(alices, r.watch(t, "alice's", ""))
		}
		for i := range 4 {
			bobs = append(bobs, r.watch(t, "bob's", fmt.Sprint("&fieldSelector=spec.nodeName!%3Dn", i)))
		}
		require.Equal(t, watches+4, r.Status().Watches)
		tokens, rights := r.asked()
		require.Equal(t, []int{2, 5}, []int{tokens, rights})
		time.Sleep(10 * time.Minute)
		tokens, rights = r.asked()
		require.InDelta(t, 2*12, tokens, 2*2, "a question for each token, whatever the number of watches")
		require.InDelta(t, 5*12, rights, 5*2, "a question for each right")

		r.change(func() {
			r.allows = func(s authorizationv1.SubjectAccessReviewSpec) (bool, string) { return s.User != "alice", "" }
		})
		for _, s := range alices {
			require.False(t, s.isOver(t))
		}
		time.Sleep(time.Minute)
		for _, s := range alices {
			require.True(t, s.isOver(t))
		}
		require.Equal(t, 4, r.Status().Watches)

		r.change(func() { delete(r.users, "bob's") })
		for _, s := range bobs {
			require.False(t, s.isOver(t))
		}
		time.Sleep(time.Minute)
		for _, s := range bobs {
			require.True(t, s.isOver(t))
		}
		require.Zero(t, r.Status().Watches)
		require.Equal(t, 403, get(r.Reviews, "/api/v1/pods?watch=1", "alice's").Code)
		require.Equal(t, 401, get(r.Reviews, "/api/v1/pods?watch=1", "bob's").Code)
	})
}

// TestAWatchThatEndsIsForgotten, whoever ends it: then nothing more is asked.
func TestAWatchThatEndsIsForgotten(t *testing.T) {
	overEachProtocol(t, func(t *testing.T, r *relay) {
		require.NoError(t, r.watch(t, "alice's", "").close())
		synctest.Wait()
		require.Zero(t, r.Status().Watches)

		r.watch(t, "alice's", "&timeoutSeconds=5").endsWithin(t, 5*time.Second)
		require.Zero(t, r.Status().Watches)
		tokens, rights := r.asked()
		time.Sleep(time.Hour)
		again, rightsAgain := r.asked()
		require.Equal(t, []int{tokens, rights}, []int{again, rightsAgain})
	})
}

// TestAWatchHoldsWhileTheUpstreamIsAway, and ends when the hold does.
func TestAWatchHoldsWhileTheUpstreamIsAway(t *testing.T) {
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			overEachProtocol(t, func(t *testing.T, r *relay) {
				watch := r.watch(t, "alice's", "")
				r.change(func() { trouble(r.cluster) })
				time.Sleep(5 * time.Minute)
				require.False(t, watch.isOver(t))
				r.heal()
				time.Sleep(25 * time.Second) // a question that hangs, and the next look
				require.NoError(t, r.Status().Err())
				r.change(func() { trouble(r.cluster) })
				time.Sleep(10*time.Minute + 30*time.Second)
				require.False(t, watch.isOver(t), "the hold begins anew")
				watch.endsWithin(t, time.Minute)
				r.heal()
				time.Sleep(10 * time.Second) // questions that hang
			})
		})
	}
}

// TestAWatchEndsWithTheServersOwnRight: nothing holds then.
func TestAWatchEndsWithTheServersOwnRight(t *testing.T) {
	overEachProtocol(t, func(t *testing.T, r *relay) {
		watch := r.watch(t, "alice's", "")
		r.change(func() { r.trouble = refuse(403) })
		watch.endsWithin(t, time.Minute)
		require.ErrorContains(t, r.Status().Err(), "system:auth-delegator")
	})
}

// TestAWatchFollowsItsUser: a token whose user changes has the rights of the new one.
func TestAWatchFollowsItsUser(t *testing.T) {
	overEachProtocol(t, func(t *testing.T, r *relay) {
		r.allows = func(s authorizationv1.SubjectAccessReviewSpec) (bool, string) { return s.UID != "3", "" }
		watch := r.watch(t, "alice's", "")
		r.change(func() { r.users["alice's"] = authenticationv1.UserInfo{Username: "alice", UID: "2"} })
		time.Sleep(2 * time.Minute)
		require.False(t, watch.isOver(t))
		require.Equal(t, "2", r.rights[len(r.rights)-1].UID)
		r.change(func() { r.users["alice's"] = authenticationv1.UserInfo{Username: "alice", UID: "3"} })
		watch.endsWithin(t, time.Minute)
	})
}

// TestAWatchOverAWebSocket has its token among the subprotocols, is not sent the token back, and
// ends with its right.
func TestAWatchOverAWebSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelay(t, false)
		dial := func(subprotocols ...string) (*websocket.Conn, error) {
			config, err := websocket.NewConfig("ws://localhost/api/v1/pods?watch=1", "http://localhost")
			require.NoError(t, err)
			config.Protocol = subprotocols
			conn, err := r.network.Dial(t.Context(), "", "")
			require.NoError(t, err)
			socket, err := websocket.NewClient(config, conn)
			if err != nil {
				require.NoError(t, conn.Close())
			}
			return socket, err
		}
		const token = "base64url.bearer.authorization.k8s.io.YWxpY2Uncw" // alice's
		for _, bad := range [][]string{
			{token}, {token, token, "x"}, {"base64url.bearer.authorization.k8s.io.YWxpY2Uncw==", "x"},
			{"base64url.bearer.authorization.k8s.io._w", "x"}, {"base64url.bearer.authorization.k8s.io.YWxpY2U", "x"}, {"x"},
		} {
			_, err := dial(bad...)
			require.Error(t, err, bad)
		}
		socket, err := dial("v1.example.com", token)
		require.NoError(t, err)
		require.Equal(t, []string{"v1.example.com"}, socket.Config().Protocol)
		var message string
		require.NoError(t, websocket.Message.Receive(socket, &message))
		require.Contains(t, message, "ADDED")
		require.Equal(t, 1, r.Status().Watches)
		r.change(func() { clear(r.users) })
		require.ErrorIs(t, websocket.Message.Receive(socket, &message), io.EOF)
		synctest.Wait()
		require.Zero(t, r.Status().Watches)
		_ = socket.Close() // the server has closed the pipe
	})
}

// TestRightsChangeUnderLoad: users lose and get back their rights while watches come and go. A
// watch never tells of an object that was written more than a minute after its right had gone.
func TestRightsChangeUnderLoad(t *testing.T) {
	overEachProtocol(t, func(t *testing.T, r *relay) {
		var lost atomic.Int64 // when alice's right went; 0: she has it
		r.allows = func(s authorizationv1.SubjectAccessReviewSpec) (bool, string) {
			return s.User == "bob" || lost.Load() == 0, ""
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
		defer stop()
		var running sync.WaitGroup
		var told, denied [2]atomic.Int64
		for i := range 10 {
			running.Go(func() {
				who := i % 2
				for ctx.Err() == nil {
					time.Sleep(time.Duration(500+i) * time.Millisecond)
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf(
						"http://localhost/api/v1/pods?watch=1&timeoutSeconds=%d&fieldSelector=metadata.name%%3Da", 20+60*i), nil)
					if err != nil {
						t.Error(err)
						return
					}
					request.Header.Set("Authorization", "Bearer "+[]string{"alice's", "bob's"}[who])
					answer, err := r.web.Do(request)
					if err != nil {
						continue
					}
					if answer.StatusCode != http.StatusOK {
						denied[who].Add(1)
					}
					for lines := bufio.NewScanner(answer.Body); answer.StatusCode == http.StatusOK && lines.Scan(); {
						told[who].Add(1)
						if gone := lost.Load(); who == 0 && gone != 0 && time.Now().UnixNano() > gone+int64(time.Minute) {
							t.Errorf("told %s after the right had gone", time.Duration(time.Now().UnixNano()-gone))
						}
					}
					_ = answer.Body.Close()
				}
			})
		}
		running.Go(func() {
			for ctx.Err() == nil {
				p, err := r.pods.Get("ns", "a")
				if err == nil {
					p = p.DeepCopy()
					p.Labels = map[string]string{"at": fmt.Sprint(time.Now().UnixNano())}
					_, err = r.pods.Update(p)
				}
				if err != nil {
					t.Error(err)
				}
				time.Sleep(3 * time.Second)
			}
		})
		for ctx.Err() == nil {
			time.Sleep(2*time.Minute + 30*time.Second)
			lost.Store(time.Now().UnixNano())
			time.Sleep(2*time.Minute + 30*time.Second)
			lost.Store(0)
		}
		running.Wait()
		r.web.CloseIdleConnections()
		time.Sleep(10 * time.Second)
		require.Zero(t, r.Status().Watches)
		require.Greater(t, told[0].Load(), int64(500))
		require.Greater(t, told[1].Load(), told[0].Load())
		require.Positive(t, denied[0].Load())
		require.Zero(t, denied[1].Load())
	})
}
