package reviews_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/reflector"
)

// TestDecisionsAreRenewed: a right or token that is taken away is used for a minute at most, and
// without a question for two thirds of it. A new right or token is seen after ten seconds.
func TestDecisionsAreRenewed(t *testing.T) {
	for name, set := range map[string]func(c *cluster, granted bool){
		"right": func(c *cluster, granted bool) {
			c.allows = func(authorizationv1.SubjectAccessReviewSpec) (bool, string) { return granted, "" }
		},
		"token": func(c *cluster, granted bool) {
			if delete(c.users, "alice's"); granted {
				c.users["alice's"] = authenticationv1.UserInfo{Username: "alice"}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				r := newReviews(t, c)
				require.Equal(t, 200, get(r, pods, "alice's").Code)
				c.change(func() { set(c, false) })
				time.Sleep(41 * time.Second)
				require.Equal(t, 200, get(r, pods, "alice's").Code)
				tokens, rights := c.asked()
				require.Equal(t, []int{1, 1}, []int{tokens, rights})
				time.Sleep(19 * time.Second)
				require.GreaterOrEqual(t, get(r, pods, "alice's").Code, 401)

				c.change(func() { set(c, true) })
				time.Sleep(7 * time.Second)
				require.GreaterOrEqual(t, get(r, pods, "alice's").Code, 401)
				time.Sleep(3*time.Second + time.Nanosecond)
				require.Equal(t, 200, get(r, pods, "alice's").Code)
			})
		})
	}
}

// TestAQuestionIsAskedOnce for all who need its answer, even if the first of them goes.
func TestAQuestionIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		answer := make(chan struct{})
		c.trouble = func(w http.ResponseWriter, r *http.Request) {
			<-answer
			w.WriteHeader(http.StatusTooManyRequests)
		}
		r := newReviews(t, c, reviews.WithRefusal(0))
		first, leave := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if code := getIn(first, r, &passed{}, pods, "alice's").Code; code != 503 {
				t.Errorf("%d", code)
			}
		})
		synctest.Wait()
		codes := make(chan int, 50)
		for range 50 {
			waiting.Go(func() { codes <- get(r, pods, "alice's").Code })
		}
		leave()
		synctest.Wait()
		tokens, rights := c.asked()
		require.Equal(t, []int{1, 0}, []int{tokens, rights})
		close(answer)
		waiting.Wait()
		require.Len(t, codes, 50)
		tokens, _ = c.asked()
		require.Equal(t, 1, tokens, "the question outlives its first asker")
		for range 50 {
			require.Equal(t, 503, <-codes)
		}

		c.change(func() { c.trouble = nil })
		for range 50 {
			waiting.Go(func() { codes <- get(r, pods, "alice's").Code })
		}
		waiting.Wait()
		for range 50 {
			require.Equal(t, 200, <-codes)
		}
		tokens, rights = c.asked()
		require.Equal(t, []int{2, 1}, []int{tokens, rights})
	})
}

// troubles are the ways in which an upstream is away.
var troubles = map[string]func(*cluster){
	"no connection": func(c *cluster) { c.cut = errors.New("connection refused") },
	"stopped":       func(c *cluster) { c.trouble = hang },
	"throttled":     func(c *cluster) { c.trouble = refuse(429) },
	"failing":       func(c *cluster) { c.trouble = refuse(500) },
	"unavailable":   func(c *cluster) { c.trouble = refuse(503) },
}

func (c *cluster) heal() { c.change(func() { c.trouble, c.cut = nil, nil }) }

// TestADecisionHoldsWhileTheUpstreamIsAway, for as long as the option says; a request waits two
// seconds for the renewal, and no time after one has failed.
func TestADecisionHoldsWhileTheUpstreamIsAway(t *testing.T) {
	for name, trouble := range troubles {
		for _, hold := range []time.Duration{0, 5 * time.Minute} {
			t.Run(fmt.Sprint(name, " ", hold), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster()
					r := newReviews(t, c, reviews.WithHold(hold))
					require.Equal(t, 200, get(r, pods, "alice's").Code)
					began := time.Now()
					c.change(func() { trouble(c) })
					slowest := time.Duration(0)
					for time.Since(began) < 42*time.Second+hold {
						sent := time.Now()
						require.Equal(t, 200, get(r, pods, "alice's").Code, "after %s", time.Since(began))
						slowest = max(slowest, time.Since(sent))
						time.Sleep(time.Second)
					}
					require.LessOrEqual(t, slowest, 4*time.Second, "two for the token, two for the right")
					time.Sleep(time.Until(began.Add(time.Minute + hold)))
					answer := get(r, pods, "alice's")
					require.Equal(t, 503, answer.Code)
					require.Equal(t, "5", answer.Header().Get("Retry-After"))
					require.Contains(t, statusOf(t, answer).Message, "the upstream does not answer")
					s := r.Status()
					require.Error(t, s.Err())
					require.WithinRange(t, s.Tokens.Since, began.Add(42*time.Second), began.Add(75*time.Second))
					require.Equal(t, hold > 0, s.Tokens.Held > 0)

					c.heal()
					synctest.Wait()
					time.Sleep(10 * time.Second) // questions that hang
					require.Equal(t, 200, get(r, pods, "alice's").Code)
					require.NoError(t, r.Status().Err())
				})
			})
		}
	}
}

// TestNothingHoldsAfterARefusal, of the right or of this server itself.
func TestNothingHoldsAfterARefusal(t *testing.T) {
	for name, refusal := range map[string]func(*cluster){
		"of the right": func(c *cluster) {
			c.allows = func(authorizationv1.SubjectAccessReviewSpec) (bool, string) { return false, "" }
		},
		"of the token":      func(c *cluster) { clear(c.users) },
		"of the server":     func(c *cluster) { c.trouble = refuse(403) },
		"of its credential": func(c *cluster) { c.trouble = refuse(401) },
		"of the API":        func(c *cluster) { c.trouble = refuse(404) },
		"by a redirect": func(c *cluster) {
			c.trouble = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
			}
		},
		"by a page": func(c *cluster) {
			c.trouble = func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>Welcome</html>") }
		},
		"by another API": func(c *cluster) {
			c.trouble = func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":{"allowed":true,"authenticated":true,"user":{"username":"root"}}}`)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				r := newReviews(t, c)
				require.Equal(t, 200, get(r, pods, "alice's").Code)
				c.change(func() { refusal(c) })
				time.Sleep(time.Minute)
				require.NotEqual(t, 200, get(r, pods, "alice's").Code)
				c.change(func() { c.cut = errors.New("away") })
				time.Sleep(10*time.Second + time.Nanosecond)
				require.Equal(t, 503, get(r, pods, "alice's").Code)
			})
		})
	}
}

// TestFailsClosed: without a decision the answer says why, and so does the status.
func TestFailsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		trouble func(*cluster)
		code    int
		message string
		class   reflector.Class
		quiet   bool // the status tells nothing
	}{
		"no connection": {troubles["no connection"], 503, "the upstream does not answer", reflector.Unknown, false},
		"stopped":       {troubles["stopped"], 503, "the upstream does not answer", reflector.Disconnected, false},
		"throttled":     {troubles["throttled"], 503, "the upstream does not answer", reflector.Throttled, false},
		"failing":       {troubles["failing"], 503, "the upstream does not answer", reflector.ServerError, false},
		"no right": {func(c *cluster) { c.trouble = refuse(403) }, 500, "the upstream lets this server create no tokenreviews: " +
			"grant its user the verb create on tokenreviews.authentication.k8s.io, as ClusterRole system:auth-delegator does", reflector.Forbidden, false},
		"no credential": {func(c *cluster) { c.trouble = refuse(401) }, 500, "does not accept this server's own credential for tokenreviews", reflector.Unauthorized, false},
		"no API":        {func(c *cluster) { c.trouble = refuse(404) }, 500, "the upstream refuses to review (404 for tokenreviews)", reflector.NotFound, false},
		"bad question":  {func(c *cluster) { c.trouble = refuse(422) }, 500, "the upstream refuses to review (422 for tokenreviews)", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				test.trouble(c)
				r := newReviews(t, c)
				behind, began := &passed{}, time.Now()
				answer := getIn(t.Context(), r, behind, pods, "alice's")
				require.Equal(t, test.code, answer.Code)
				require.Empty(t, behind.requests)
				require.LessOrEqual(t, time.Since(began), 10*time.Second)
				require.Contains(t, statusOf(t, answer).Message, test.message)
				require.NotContains(t, answer.Body.String(), "secret body")
				s := r.Status()
				require.EqualValues(t, 1, s.Tokens.Failed)
				require.Equal(t, test.quiet, s.Err() == nil)
				require.Equal(t, test.class, s.Tokens.Class)
				if !test.quiet {
					require.NotContains(t, s.Err().Error(), "secret body")
					causes := map[string]error{}
					for name, err := range r.Causes("relay") {
						causes[name] = err
					}
					require.Equal(t, map[string]error{"relay/tokenreviews": s.Tokens.Err}, causes)
				}
			})
		})
	}
}

// TestAFloodOfTokensDisplacesNoGoodOne.
func TestAFloodOfTokensDisplacesNoGoodOne(t *testing.T) {
	const tokens = 5000
	c := newCluster()
	r := newReviews(t, c)
	require.Equal(t, 200, get(r, pods, "alice's").Code)
	for i := range tokens {
		require.Equal(t, 401, get(r, pods, fmt.Sprint("wrong", i)).Code)
	}
	asked, _ := c.asked()
	require.Equal(t, tokens+1, asked)
	require.Equal(t, 200, get(r, pods, "alice's").Code)
	require.Equal(t, 401, get(r, pods, fmt.Sprint("wrong", tokens-1)).Code)
	again, _ := c.asked()
	require.Equal(t, asked, again, "the good one and the newest bad one are known")
}

// TestRenewalsDoNotWaitForAFlood of tokens that fill the upstream. The flood itself is bounded.
func TestRenewalsDoNotWaitForAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		r := newReviews(t, c)
		require.Equal(t, 200, get(r, pods, "alice's").Code)
		time.Sleep(time.Minute)
		flood, end := context.WithCancel(t.Context())
		c.change(func() {
			c.trouble = func(w http.ResponseWriter, r *http.Request) { <-flood.Done() }
		})
		var waiting sync.WaitGroup
		busy := make(chan string, 2000)
		for i := range 2000 {
			waiting.Go(func() {
				answer := get(r, pods, fmt.Sprint("wrong", i))
				if answer.Code == 429 {
					busy <- answer.Header().Get("Retry-After")
				}
			})
		}
		synctest.Wait()
		require.Len(t, busy, 2000-1024)
		require.Equal(t, "1", <-busy)
		asked, _ := c.asked()
		require.Equal(t, 1+32, asked)

		c.heal()
		require.Equal(t, 200, get(r, pods, "alice's").Code)
		renewed, _ := c.asked()
		require.Equal(t, asked+1, renewed, "asked before the flood")
		end()
		waiting.Wait()
	})
}

// TestQuestionsThatWaitAreBoundedInBytes: long questions do not pile up before a stopped upstream,
// not even those of a client with a right to them.
func TestQuestionsThatWaitAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, long, room = 60, 400 << 10, (16 << 20) / (400 << 10)
		c := newCluster()
		r := newReviews(t, c)
		url := func(i int) string {
			return fmt.Sprint(pods, "/", strings.Repeat("x", long), i)
		}
		for i := range requests {
			require.Equal(t, 200, get(r, url(i), "alice's").Code)
		}
		time.Sleep(time.Minute)
		c.change(func() { c.trouble = hang })
		send := func(from int) (codes map[int]int, atOnce int) {
			answers, began := make(chan int, requests), time.Now()
			for i := range requests {
				go func() { answers <- get(r, url(from+i), "alice's").Code }()
			}
			codes = map[int]int{}
			for range requests {
				codes[<-answers]++
				if time.Since(began) == 0 {
					atOnce++
				}
			}
			return codes, atOnce
		}
		require.Equal(t, 200, get(r, url(0), "alice's").Code)
		time.Sleep(15 * time.Second) // now the token is held
		_, asked := c.asked()
		codes, atOnce := send(0)
		require.Equal(t, map[int]int{200: requests}, codes, "decisions hold")
		require.Equal(t, requests, atOnce, "the last try has failed")
		synctest.Wait()
		_, again := c.asked()
		require.Equal(t, 32, again-asked)
		time.Sleep(15 * time.Second)
		codes, atOnce = send(requests)
		require.Equal(t, requests, codes[503]+codes[429])
		require.GreaterOrEqual(t, codes[429], requests-room)
		require.InDelta(t, requests-room, atOnce, 3)
		c.heal()
		time.Sleep(15 * time.Second)
		require.Equal(t, 200, get(r, url(requests), "alice's").Code)
	})
}

// TestDecisionsAreNotMixedUp: the cluster allows a user exactly the questions whose words it has
// drawn. Requests that differ in anything have a question of their own.
func TestDecisionsAreNotMixedUp(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	t.Log("seed", seed)
	words := []string{"a", "b", "a/b", "a\nb", `a","b`, "a\x00", "%2f", "A", "ä", "a b", "", "a,b", "b=c", "\u2028", "<"}
	word := func() string { return words[random.IntN(len(words))] }
	c := newCluster()
	c.users = map[string]authenticationv1.UserInfo{}
	for i := range 40 {
		c.users[fmt.Sprint("token", i)] = authenticationv1.UserInfo{
			Username: "u" + word(), UID: word(), Groups: []string{word(), word()},
			Extra: map[string]authenticationv1.ExtraValue{word(): {word(), word()}},
		}
	}
	allowed := func(s authorizationv1.SubjectAccessReviewSpec) bool {
		return len(fmt.Sprint(s, s.ResourceAttributes))%2 == 0
	}
	var last *authorizationv1.SubjectAccessReviewSpec
	c.allows = func(s authorizationv1.SubjectAccessReviewSpec) (bool, string) {
		last = &s
		return allowed(s), ""
	}
	r := newReviews(t, c)
	known := map[string]bool{}
	for range 6000 {
		token := fmt.Sprint("token", random.IntN(len(c.users)))
		target := "/api/v1/namespaces/" + url.PathEscape("n"+strings.ReplaceAll(word(), "/", "")) + "/pods"
		query := url.Values{}
		switch random.IntN(3) {
		case 0:
			target += "/" + url.PathEscape("p"+strings.ReplaceAll(word(), "/", ""))
		case 1:
			query.Set("fieldSelector", "spec.nodeName="+word())
			query.Set("labelSelector", "a="+word())
		case 2:
			query.Set("watch", word())
		}
		last = nil
		before := get(r, target+"?"+query.Encode(), token).Code
		id := token + " " + target + "?" + query.Encode()
		if last != nil {
			known[id] = allowed(*last)
		}
		if was, ok := known[id]; ok {
			require.Equal(t, was, before == 200, id)
		} else {
			// Answered by the decision on an equal question: of a user or a selector that means the
			// same.
			fresh := newReviews(t, c)
			require.Equal(t, get(fresh, target+"?"+query.Encode(), token).Code, before, id)
		}
	}
	require.Greater(t, len(known), 200)
}
