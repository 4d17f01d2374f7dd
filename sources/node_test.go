package sources_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// region is an API server with pods and nodes, which counts the looks at a Node.
type region struct {
	t     *testing.T
	pods  *listwatchtest.Collection[*corev1.Pod]
	nodes *listwatchtest.Collection[*corev1.Node]
	looks atomic.Int32
	fails atomic.Int32 // the status of each look, unless zero; negative: nothing listens
	says  string       // the text of that
	after string       // when it may be made again
	log   logLines
}

func newRegion(t *testing.T) *region {
	api := listwatchtest.NewServer(t)
	return &region{t: t, pods: listwatchtest.Serve(api, listwatchtest.Pods()), nodes: listwatchtest.Serve(api, listwatchtest.Of[*corev1.Node]())}
}

// source reads from the region.
func (c *region) source(options ...reflector.Option) sources.Input {
	config := c.pods.Server().Config()
	inner := config.Transport
	config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/nodes/") {
			return inner.RoundTrip(r)
		}
		c.looks.Add(1)
		switch code := int(c.fails.Load()); {
		case code < 0:
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		case code > 0:
			answer := httptest.NewRecorder()
			answer.Header().Set("Retry-After", c.after)
			http.Error(answer, c.says, code)
			response := answer.Result()
			response.Request = r
			return response, nil
		}
		return inner.RoundTrip(r)
	})
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(c.t, err)
	return sources.APIServer(client, options...)
}

func (c *region) run(options ...sources.Option) *rig {
	return start(c.t, append([]sources.Option{sources.WithLogger(c.log.logger())}, options...)...)
}

func (c *region) register(name string) {
	c.nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (c *region) pod(name string) {
	pod := podOf(name, "v1", uid(""))
	pod.Spec.NodeName = "node-1"
	c.pods.Create(pod)
}

func (r *rig) end() {
	r.stop()
	<-r.done
}

// TestAWrongNodeNameIsAProblem: the server has no Node of the name. Verdict, Ready, metrics, log
// and SafeToPrune say so until the Node is there, whether it has pods or not.
func TestAWrongNodeNameIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.register("node-2")
		r := c.run(c.source())
		r.expect("ADD api")
		<-r.Synced()
		synctest.Wait()
		const want = `the API server has no Node "node-1": is that this node's name? ` +
			"Give New the spec.nodeName of the agent's own pod, by the downward API"
		require.EqualError(t, r.Ready(0), "api: "+want)
		require.False(t, r.SafeToPrune(sources.APISource))
		require.Len(t, r.Status()[0].Problems, 1)
		require.EqualError(t, r.Status()[0].Problems[0], want)
		require.Equal(t, reflector.NotFound, r.Status()[0].Verdict(0).Class)
		require.Equal(t, "not_found", notRight(r.Sources, sources.APISource))
		require.Equal(t, 1, strings.Count(c.log.text(), "has no Node"))
		c.pod("web")
		r.expect("ADD api web=v1")
		time.Sleep(time.Hour)
		require.False(t, r.SafeToPrune(sources.APISource))
		looks := c.looks.Load()
		require.Greater(t, looks, int32(100), "it is looked for")
		require.Less(t, looks, int32(300), "at a decent pace")
		require.Equal(t, 1, strings.Count(c.log.text(), "has no Node"))

		c.register("node-1")
		time.Sleep(30 * time.Second)
		require.NoError(t, r.Ready(3*time.Minute))
		require.True(t, r.SafeToPrune(sources.APISource))
		require.Empty(t, r.Status()[0].Problems)
		require.Contains(t, c.log.text(), "the Node is found")
		looks = c.looks.Load()
		time.Sleep(10 * time.Hour)
		require.Equal(t, looks, c.looks.Load(), "once it is found, it is not looked at again")
		r.end()
	})
}

// TestAnAgentBeforeItsNode: a kubelet registers its Node some time after the agent has started.
func TestAnAgentBeforeItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		r := c.run(c.source())
		r.expect("ADD api")
		time.Sleep(2 * time.Second)
		c.register("node-1")
		time.Sleep(30 * time.Second) // no look waits longer
		require.True(t, r.SafeToPrune(sources.APISource))
		r.end()
	})
}

// TestTheNodeThatIsThere: it is asked for once, in no list's way, and nothing is said of it.
func TestTheNodeThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.register("node-1")
		r := c.run(c.source())
		r.expect("ADD api")
		<-r.Synced()
		synctest.Wait()
		require.True(t, r.SafeToPrune(sources.APISource))
		require.Equal(t, "watch", r.Status()[0].Mode)
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, c.looks.Load())
		require.NotContains(t, c.log.text(), "Node")
		r.end()
	})
}

// TestANodeThatIsNotSeen: what the answer of the server says of the Node.
func TestANodeThatIsNotSeen(t *testing.T) {
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"hunter2",` +
		`"details":{"kind":"nodes","name":"node-1"}}`
	const elsewhere = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"hunter2",` +
		`"details":{"kind":"namespaces","name":"node-1"}}`
	for name, row := range map[string]struct {
		status int
		text   string
		safe   bool
		says   string // of Mode, or of the problem
		looks  int32  // within two hours
	}{
		"the right is missing":                {403, forbidden, true, `watch; whether the Node "node-1" exists is not known: the account may not get nodes`, 13},
		"nodes are not served":                {404, "404 page not found", true, "watch", 1},
		"another object is not there":         {404, elsewhere, true, "watch", 1},
		"the server fails":                    {500, "hunter2", false, `the API server did not say whether it has a Node "node-1" (server_error)`, 600},
		"the server wants another credential": {401, "hunter2", false, `the API server did not say whether it has a Node "node-1" (unauthorized)`, 600},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newRegion(t)
				c.fails.Store(int32(row.status))
				c.says = row.text
				r := c.run(c.source())
				r.expect("ADD api")
				<-r.Synced()
				synctest.Wait()
				require.Equal(t, row.safe, r.SafeToPrune(sources.APISource))
				status := r.Status()[0]
				if row.safe {
					require.NoError(t, r.Ready(time.Minute))
					require.Empty(t, status.Problems)
					require.Equal(t, row.says, status.Mode)
				} else {
					require.EqualError(t, r.Ready(0), "api: "+row.says)
					require.EqualError(t, status.Problems[0], row.says)
				}
				time.Sleep(2*time.Hour + time.Minute)
				require.LessOrEqual(t, c.looks.Load(), row.looks)
				require.NotContains(t, c.log.text(), "hunter2")
				c.fails.Store(0)
				c.register("node-1")
				time.Sleep(time.Hour)
				require.True(t, r.SafeToPrune(sources.APISource))
				require.Equal(t, row.status == http.StatusNotFound || c.looks.Load() > 1, true)
				r.end()
			})
		})
	}
}

// TestAServerThatComesBackIsAskedForTheNode at once, rather than after the pause of many failures.
// A server that answers for pods alone is not asked with each of their changes.
func TestAServerThatComesBackIsAskedForTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.register("node-1")
		c.fails.Store(http.StatusServiceUnavailable)
		r := c.run(c.source())
		r.expect("ADD api")
		for i := range 600 {
			c.pod(fmt.Sprint("p", i))
			r.update()
			time.Sleep(time.Second)
		}
		require.Less(t, c.looks.Load(), int32(100))
		time.Sleep(10 * time.Minute)
		c.fails.Store(0)
		c.pod("web")
		r.expect("ADD api web=v1")
		time.Sleep(time.Second)
		require.True(t, r.SafeToPrune(sources.APISource))
		r.end()
	})
}

// TestTheNodeIsAskedForWhenTheServerSays: a time that it names is kept.
func TestTheNodeIsAskedForWhenTheServerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.register("node-1")
		c.fails.Store(http.StatusTooManyRequests)
		c.after = "120"
		r := c.run(c.source())
		r.expect("ADD api")
		synctest.Wait()
		looks := c.looks.Load()
		time.Sleep(2*time.Minute - time.Second)
		require.Equal(t, looks, c.looks.Load())
		c.fails.Store(0)
		time.Sleep(31 * time.Second)
		require.True(t, r.SafeToPrune(sources.APISource))
		r.end()
	})
}

// TestANodeOfAServerThatStarts: it refuses until it has read its roles, which is no word about the
// account.
func TestANodeOfAServerThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.register("node-1")
		c.fails.Store(-1)
		r := c.run(c.source())
		r.expect("ADD api")
		time.Sleep(time.Minute)
		c.says = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		c.fails.Store(http.StatusForbidden)
		time.Sleep(2 * time.Second)
		c.fails.Store(0)
		time.Sleep(5 * time.Second) // a look of a server that starts waits 2 s at most
		require.Equal(t, "watch", r.Status()[0].Mode, "the Node is found")
		r.end()
	})
}

// TestWithoutNode: the option makes no request, and is refused where it has no meaning.
func TestWithoutNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		r := c.run(c.source().WithoutNode())
		r.expect("ADD api")
		<-r.Synced()
		synctest.Wait()
		require.True(t, r.SafeToPrune(sources.APISource))
		time.Sleep(time.Hour)
		require.Zero(t, c.looks.Load())
		r.end()
	})
	err := sources.New("node-1", sources.WithLogger(logr.Discard()), sources.Custom(newScripted("s")).WithoutNode()).Run(t.Context())
	require.EqualError(t, err, "sources: WithoutNode: only an APIServer looks for the Node: leave it out for another source")
}

// TestLikeKubeletWaitsForTheNode: the kubelet lists its pods once a list of its own Node was
// answered, with the Node or without it.
func TestLikeKubeletWaitsForTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRegion(t)
		c.pod("web")
		c.fails.Store(http.StatusServiceUnavailable)
		r := c.run(sources.LikeKubelet(), c.source())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, r.Status()[0].Pods)
		require.EqualError(t, r.Status()[0].Problems[0], `the API server did not say whether it has a Node "node-1" (server_error)`)
		c.fails.Store(0)
		time.Sleep(30 * time.Second)
		r.expect("ADD api web=v1")
		require.False(t, r.SafeToPrune(sources.APISource), "there is no Node")
		r.end()
	})
}
