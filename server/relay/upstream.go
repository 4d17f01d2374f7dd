package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/tributary-go/tributary/reflector"
)

const (
	// askPatience bounds one question to the upstream.
	askPatience = 5 * time.Second
	// answerAge is how long an answer about a group version stands, and missAge is how long it
	// stands for a resource that it does not have: a definition may just have been made.
	answerAge = time.Minute
	missAge   = time.Second
	// mostAnswers bounds the answers that are remembered: paths are the clients' choice.
	mostAnswers = 512
	// Questions that the paths of clients make, in a second and at once. Beyond that the requests
	// are passed on.
	questionRate, questionBurst = 20, 100
)

// upstream is the API server as the relay asks it, under its own credential.
type upstream struct {
	config  *rest.Config
	name    string // for people
	client  rest.Interface
	limiter flowcontrol.RateLimiter
	begin   func(func()) bool // starts a goroutine of the relay

	mu      sync.Mutex
	answers map[schema.GroupVersion]*answer
	minor   int // of the newest release that has answered
}

// answer is the part of discovery about a group version; its fields are set before done closes.
type answer struct {
	done  chan struct{}
	at    time.Time
	kinds []metav1.APIResource
	owner owner
}

func newUpstream(config *rest.Config, begin func(func()) bool) (*upstream, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1     // reflectors and questions have paces of their own
	config.Timeout = 0  // it would end watches
	config.APIPath = "" // both are of one group
	config.ContentConfig = rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
	if config.UserAgent == "" {
		config.UserAgent = "tributary-relay"
	}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return &upstream{
		config: config, name: base.Scheme + "://" + base.Host, client: client, begin: begin,
		limiter: flowcontrol.NewTokenBucketRateLimiter(questionRate, questionBurst),
		answers: map[schema.GroupVersion]*answer{},
	}, nil
}

// get reads a document.
func (u *upstream) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	text, err := u.client.Get().AbsPath(path).MaxRetries(0).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// kind is a resource as discovery has it, and who serves it. It reports false if the upstream does
// not serve it, or does not say.
func (u *upstream) kind(ctx context.Context, resource schema.GroupVersionResource) (kind metav1.APIResource, by owner, ok bool) {
	a := u.ask(resource)
	if a == nil {
		return kind, by, false
	}
	select {
	case <-a.done:
		kind, ok = a.find(resource)
		return kind, a.owner, ok
	case <-ctx.Done():
		return kind, by, false
	}
}

func (a *answer) find(resource schema.GroupVersionResource) (kind metav1.APIResource, ok bool) {
	i := slices.IndexFunc(a.kinds, func(k metav1.APIResource) bool { return k.Name == resource.Resource })
	if i < 0 {
		return kind, false
	}
	return a.kinds[i], true
}

// ask returns the answer that stands for a resource, or will. Requests at the same time share
// one question. It is nil if there are too many questions.
func (u *upstream) ask(resource schema.GroupVersionResource) *answer {
	gv := resource.GroupVersion()
	a, isNew := u.find(gv, resource)
	if isNew && !u.begin(func() { u.answer(gv, a) }) {
		close(a.done) // without kinds
	}
	return a
}

// find finds the answer that stands, or makes one that is to be given.
func (u *upstream) find(gv schema.GroupVersion, resource schema.GroupVersionResource) (a *answer, isNew bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.answers[gv]; a != nil && a.stands(resource) {
		return a, false
	}
	if !u.limiter.TryAccept() {
		return nil, false
	}
	if len(u.answers) >= mostAnswers {
		clear(u.answers)
	}
	a = &answer{done: make(chan struct{})}
	u.answers[gv] = a
	return a, true
}

// forget has the upstream asked again about a group version.
func (u *upstream) forget(gv schema.GroupVersion) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.answers, gv)
}

// stands reports whether an answer is on its way, or young enough.
func (a *answer) stands(resource schema.GroupVersionResource) bool {
	select {
	case <-a.done:
	default:
		return true
	}
	age := missAge
	if _, found := a.find(resource); found {
		age = answerAge
	}
	return time.Since(a.at) < age
}

func (u *upstream) answer(gv schema.GroupVersion, a *answer) {
	defer close(a.done)
	var list metav1.APIResourceList
	err := u.get(context.Background(), groupVersionPath(gv), &list)
	if err == nil {
		a.owner, err = u.owner(context.Background(), gv)
	}
	if a.at = time.Now(); err == nil {
		a.kinds = list.APIResources
	}
}

// groupVersionPath is the path of what discovery has of a group version.
func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// readable reports whether a kind can be copied.
func readable(kind metav1.APIResource) bool {
	return slices.Contains(kind.Verbs, "list") && slices.Contains(kind.Verbs, "watch")
}

// check asks for a sign of life, and for the release.
func (u *upstream) check(ctx context.Context) error {
	var is version.Info
	if err := u.get(ctx, "/version", &is); err != nil {
		return fmt.Errorf("%s: %s", u.name, why(err))
	}
	minor, _ := strconv.Atoi(strings.TrimRight(is.Minor, "+"))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.minor = max(u.minor, minor)
	return nil
}

// release is the minor number of the newest release that has answered; zero before any has.
func (u *upstream) release() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.minor
}

// why is the class of an error, and the words of a Status: nothing else is shown to clients.
func why(err error) string {
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &known) && known.Status().Code == http.StatusUnauthorized:
		return "it refuses the relay's credential (401)"
	case errors.As(err, &known):
		return fmt.Sprintf("it answers %d %s", known.Status().Code, known.Status().Reason)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", askPatience)
	}
	return string(reflector.Classify(err))
}
