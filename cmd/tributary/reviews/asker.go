package reviews

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/tributary-go/tributary/internal/causes"
)

const (
	// reviewTimeout bounds a review, as on API servers behind the aggregator.
	reviewTimeout = 10 * time.Second
	// renewPatience is how long a request waits for a renewal if it has a decision to fall back on.
	renewPatience = 2 * time.Second
	// retryEvery is how often the upstream is asked while it does not answer.
	retryEvery = 5 * time.Second
	// atOnce bounds the questions of a lane that are in flight.
	atOnce = 32
	// mostBytes bounds the questions of a lane that are in flight or wait for it. A question
	// counts for leastBytes at least, so that at most 1,024 wait.
	mostBytes  = 16 << 20
	leastBytes = 16 << 10
	// maxAnswer bounds the answer to a review.
	maxAnswer = 1 << 20
	// mostGranted and mostRefused bound the answers that are remembered, each kind for itself, so
	// that no number of wrong tokens displaces an accepted one.
	mostGranted = 64 << 10
	mostRefused = 8 << 10
)

var errBusy = errors.New("too many reviews at once")

// asker is the transport of reviews: one request for all who wait for the same answer, the last
// positive answer while the upstream is away, and bounds on the questions at once.
type asker struct {
	upstream http.RoundTripper
	times    settings
	secret   [sha256.Size]byte // of keys, which no other process can compute

	flights singleflight.Group
	granted *cache.LRUExpireCache
	refused *cache.LRUExpireCache
	reviews map[string]*record

	mu sync.Mutex // guards the next fields of records
}

// record is the state of one kind of review.
type record struct {
	// renewals have their own: clients with wrong tokens cannot keep them waiting
	fresh, renewals lane

	Review
	away time.Time // the upstream did not answer, and is not asked again before this
}

// lane is questions that take turns.
type lane struct {
	room   *semaphore.Weighted // for the bytes of questions
	places chan struct{}       // one for each question in flight
}

func newRecord() *record { return &record{fresh: newLane(), renewals: newLane()} }

func newLane() lane {
	return lane{semaphore.NewWeighted(mostBytes), make(chan struct{}, atOnce)}
}

func newAsker(upstream http.RoundTripper, s settings) *asker {
	a := &asker{
		upstream: upstream, times: s,
		granted: cache.NewLRUExpireCache(mostGranted), refused: cache.NewLRUExpireCache(mostRefused),
		reviews: map[string]*record{tokenReviews: newRecord(), rightReviews: newRecord()},
	}
	_, _ = rand.Read(a.secret[:]) // never fails
	return a
}

// The kinds of review, as the last segment of their paths.
const (
	tokenReviews = "tokenreviews"
	rightReviews = "subjectaccessreviews"
)

// grant is a positive answer. It counts until it is no longer fresh, or cannot be renewed.
type grant struct {
	answer []byte
	fresh  time.Time
}

// question is one review.
type question struct {
	*http.Request
	kind string
	body []byte
	key  string // has nothing of the body: a token is nowhere kept as a key
	held []byte // the last positive answer; nil: none
}

// RoundTrip answers a review. Every error is that of the request's context, errBusy or a *failure.
func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, a.secret[:])
	_, _ = fmt.Fprintf(mac, "%s %s", r.URL.Path, body) // never fails
	q := question{Request: r, kind: r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], body: body, key: string(mac.Sum(nil))}
	answer, err := a.answer(q)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusCreated, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

// answer returns an answer from memory, or that of the upstream. The end of the request ends the
// wait, and not the question.
func (a *asker) answer(q question) ([]byte, error) {
	if known, ok := a.refused.Get(q.key); ok {
		return known.([]byte), nil
	}
	if known, ok := a.granted.Get(q.key); ok {
		given := known.(grant)
		if time.Now().Before(given.fresh) {
			return given.answer, nil
		}
		q.held = given.answer
	}
	away := a.awayUntil(q.kind)
	if q.held != nil && time.Now().Before(away) {
		return a.hold(q), nil
	}
	flight := a.flights.DoChan(q.key, func() (any, error) { return a.ask(q) })
	var patience <-chan time.Time
	switch {
	case q.held != nil && !away.IsZero(): // the last try has failed
		return a.hold(q), nil
	case q.held != nil:
		timer := time.NewTimer(renewPatience)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case landed := <-flight:
		if q.held != nil && (isAway(landed.Err) || errors.Is(landed.Err, errBusy)) {
			return a.hold(q), nil
		}
		answer, _ := landed.Val.([]byte)
		return answer, landed.Err
	case <-patience:
		return a.hold(q), nil
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
}

// hold counts a decision that is used although its renewal has failed, and returns it.
func (a *asker) hold(q question) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reviews[q.kind].Held++
	return q.held
}

// awayUntil is zero if the upstream has answered the last question.
func (a *asker) awayUntil(kind string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reviews[kind].away
}

// ask asks in turn, and remembers the answer. It ends within reviewTimeout.
func (a *asker) ask(q question) (answer []byte, err error) {
	l := a.reviews[q.kind].fresh
	if q.held != nil {
		l = a.reviews[q.kind].renewals
	}
	defer func() { a.note(q.kind, err) }()
	weight := max(int64(len(q.body)), leastBytes)
	if !l.room.TryAcquire(weight) {
		return nil, errBusy
	}
	defer l.room.Release(weight)
	ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
	defer cancel()
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-ctx.Done():
		return nil, errBusy
	}
	answer, granted, err := a.post(ctx, q)
	switch {
	case err == nil && granted:
		a.granted.Add(q.key, grant{answer, time.Now().Add(a.times.fresh())}, a.times.fresh()+a.times.hold)
	case err == nil:
		a.granted.Remove(q.key)
		if q.kind == tokenReviews && a.times.refusal > 0 { // the cache of rights keeps each refusal
			a.refused.Add(q.key, answer, a.times.refusal)
		}
	case !isAway(err):
		a.granted.Remove(q.key)
	}
	return answer, err
}

// note takes in how a question has ended.
func (a *asker) note(kind string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, now := a.reviews[kind], time.Now()
	r.count(now, err)
	if r.away = (time.Time{}); isAway(err) {
		r.away = now.Add(retryEvery)
	}
}

// post sends a review, and reads the answer without the question in it. Errors have nothing of the
// bodies.
func (a *asker) post(ctx context.Context, q question) (answer []byte, granted bool, err error) {
	code, answer, err := a.send(ctx, q)
	if err != nil && code == 0 && ctx.Err() == nil {
		// A server that has just restarted has cut the idle connections.
		code, answer, err = a.send(ctx, q)
	}
	if err == nil && code/100 != 2 {
		err = apierrors.NewGenericServerResponse(code, http.MethodPost, schema.GroupResource{Resource: q.kind}, "", "", 0, false)
	}
	var read struct {
		metav1.TypeMeta `json:",inline"`
		Status          json.RawMessage `json:"status"`
	}
	var status struct{ Authenticated, Allowed, Denied bool }
	if err == nil && (json.Unmarshal(answer, &read) != nil || json.Unmarshal(read.Status, &status) != nil ||
		!strings.EqualFold(read.Kind+"s", q.kind)) {
		err = &causes.WrongAnswer{Err: errors.New("the answer is no review: is the upstream a Kubernetes API?")}
	}
	if err != nil {
		return nil, false, &failure{q.kind, code, err}
	}
	answer, err = json.Marshal(read)
	return answer, status.Authenticated || status.Allowed && !status.Denied, err
}

func (a *asker) send(ctx context.Context, q question) (code int, answer []byte, err error) {
	r := q.Request.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(q.body))
	response, err := a.upstream.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil && response.StatusCode/100 == 2 {
		return 0, nil, err
	}
	return response.StatusCode, answer, nil
}

// failure is the error of a review that has no answer.
type failure struct {
	kind string
	code int // of the upstream's answer; 0: there was none
	err  error
}

func (f *failure) Error() string {
	switch f.code {
	case http.StatusForbidden:
		apiGroup := map[string]string{tokenReviews: "authentication.k8s.io", rightReviews: "authorization.k8s.io"}[f.kind]
		return fmt.Sprintf("the upstream lets this server create no %s: grant its user the verb create on %s.%s, "+
			"as ClusterRole system:auth-delegator does", f.kind, f.kind, apiGroup)
	case http.StatusUnauthorized:
		return fmt.Sprintf("the upstream does not accept this server's own credential for %s: renew that of its kubeconfig", f.kind)
	}
	return fmt.Sprintf("%s: %s", f.kind, f.err)
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// isAway reports whether the upstream has not answered, rather than refused.
func isAway(err error) bool {
	var failed *failure
	return errors.As(err, &failed) && (failed.code == 0 || failed.code == http.StatusTooManyRequests || failed.code >= http.StatusInternalServerError)
}

// ofTheQuestion reports whether the question is at fault, and not the upstream.
func (f *failure) ofTheQuestion() bool {
	return f.code == http.StatusBadRequest || f.code == http.StatusUnprocessableEntity
}
