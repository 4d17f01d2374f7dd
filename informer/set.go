package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/store"
)

// Set shares informers within a process. [Acquire] leases a collection. All leases of one
// collection share one copy and one watch, until the last [Lease] is closed.
//
// Make one set per cluster with [NewSet] and call Run once. All other methods are safe for
// concurrent use, at any time.
type Set struct {
	config    *rest.Config
	options   []Option
	optionErr error

	mu      sync.Mutex
	phase   phase
	copies  map[copyKey]*leased
	clients map[schema.GroupVersion]rest.Interface
	start   func(*leased) // set while Run runs
	failure error         // the error that ended Run
	running sync.WaitGroup
}

// copyKey identifies a shared copy.
type copyKey struct {
	object   reflect.Type
	resource schema.GroupVersionResource
	scope    listwatch.Scope
}

func (k copyKey) String() string {
	name := k.resource.Resource
	if k.resource.Group != "" {
		name += "." + k.resource.Group
	}
	name += "/" + k.resource.Version + " as " + k.object.String()
	if scope := k.scope.String(); scope != "" {
		name += ", " + scope
	}
	return name
}

// leased is one informer of a set, of any type.
type leased struct {
	key      copyKey
	informer interface {
		Run(context.Context) error
		WaitSynced(context.Context) error
		Ready(time.Duration) error
		Status() Status
		Verify(context.Context) (Drift, error)
		Follow(name string) (changes func() iter.Seq[metrics.Change])
	}
	leases int                // guarded by the set's lock
	stop   context.CancelFunc // likewise; nil before its start
	ended  chan struct{}      // closed once Run has returned
	err    error              // Run's error
}

// NewSet makes a set whose informers read from the server of config, with one REST client per group
// version. Options apply to every informer of the set. Pass the indexes of all types here; each
// informer uses those of its own. [Acquire] and Run report errors in config and options.
func NewSet(config *rest.Config, optionList ...Option) *Set {
	err := apply(optionList).validate()
	if config == nil {
		err = errors.Join(err, errNoConfig)
	}
	return &Set{
		config: config, options: append(slices.Clone(optionList), func(o *options) { o.ofSet = true }),
		optionErr: err,
		copies:    map[copyKey]*leased{}, clients: map[schema.GroupVersion]rest.Interface{},
	}
}

var errSetEnded = errors.New("Run of the set has ended")

var errNoConfig = errors.New("informer: NewSet: the config is nil")

// Run runs the leased informers, present and future, until ctx ends, which is not an error. It
// blocks, and everything that it started has ended when it returns. It fails at once on bad options
// or a second call. If a lease's handler panics, it fails with a *[PanicError], unless the handler
// is isolated ([WithIsolation]).
//
// Trouble between one informer and the server affects no other informer: it shows in that
// informer's Status.
func (s *Set) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := s.begin(ctx, fail); err != nil {
		return err
	}
	<-ctx.Done()
	var panicked *PanicError
	if errors.As(context.Cause(ctx), &panicked) {
		s.end(panicked)
	} else {
		s.end(nil)
	}
	s.running.Wait()
	return s.failure
}

func (s *Set) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.failure = ended, err
}

func (s *Set) begin(ctx context.Context, fail context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return errors.New("informer: Set.Run was called twice: make a new set for each run")
	}
	if s.optionErr != nil {
		s.phase, s.failure = ended, s.optionErr
		return s.optionErr
	}
	s.phase = running
	s.start = func(c *leased) {
		own, stop := context.WithCancel(ctx)
		c.stop = stop
		s.running.Go(func() {
			defer stop()
			defer close(c.ended)
			var panicked *PanicError
			if c.err = c.informer.Run(own); errors.As(c.err, &panicked) {
				fail(c.err)
			}
		})
	}
	for _, c := range s.copies {
		s.start(c)
	}
	return nil
}

// Status returns the present health of each leased copy, ordered by name. It does not block.
func (s *Set) Status() []CopyStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]CopyStatus, 0, len(s.copies))
	for key, c := range s.copies {
		all = append(all, CopyStatus{Name: key.String(), Leases: c.leases, Status: c.informer.Status()})
	}
	slices.SortFunc(all, func(a, b CopyStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Ready returns nil if Run runs and all leased copies are ready, as [Informer.Ready] says;
// otherwise the error names the others, each with the cause. [reflector.ReadyHandler] accepts a
// set.
func (s *Set) Ready(maxStaleness time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == idle:
		return errSetNotRun
	case s.failure != nil:
		return fmt.Errorf("%w: %w", errSetEnded, s.failure)
	case s.phase == ended:
		return errSetEnded
	}
	var all []error
	for key, c := range s.copies {
		if err := c.informer.Ready(maxStaleness); err != nil {
			all = append(all, fmt.Errorf("%s: %w", key, err))
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// WaitSynced blocks until all copies that are leased at the call are synced, as
// [Informer.WaitSynced] says. The error names the first copy, by name, that is not synced.
// WaitSynced does not wait for a copy if its last lease is closed meanwhile.
func (s *Set) WaitSynced(ctx context.Context) error {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.copies))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *leased) int { return strings.Compare(a.key.String(), b.key.String()) })
	for _, c := range all {
		err := c.informer.WaitSynced(ctx)
		if err != nil && !s.released(c) {
			return fmt.Errorf("%s: %w", c.key, err)
		}
	}
	return nil
}

// Verify compares the leased copy of a name, which [CopyStatus] has, with the server; see
// [Informer.Verify]. It fails if there is none of the name.
func (s *Set) Verify(ctx context.Context, name string) (Drift, error) {
	s.mu.Lock()
	var found *leased
	for key, c := range s.copies {
		if key.String() == name {
			found = c
		}
	}
	s.mu.Unlock()
	if found == nil {
		return Drift{}, fmt.Errorf("informer: verify: the set has no copy %q", name)
	}
	return found.informer.Verify(ctx)
}

// released reports whether the last lease of a copy was closed.
func (s *Set) released(c *leased) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.leases == 0
}

// CopyStatus is the health of one copy of a [Set], or of one member of a [Union].
type CopyStatus struct {
	// Name is the copy's resource, Go type and scope, unique within the set and stable; of a
	// member, the name given to [Union.Add].
	Name string
	// Leases is the number of leases that share the copy; zero for a member.
	Leases int
	// Optional is true of a member that [Union.AddOptional] added.
	Optional bool
	// Status is the informer's, with the handlers of all leases. That of a member has its own
	// objects, which other members may have too, and no handlers.
	Status
}

// Acquire leases a copy of a resource. Options narrow it as in [listwatch.FromClient], and O is the
// object's struct type, as there. It does not block and asks the server nothing: the copy begins
// with the first lease, or with Run.
//
//	pods, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"), listwatch.InNamespace("ns"))
//	defer pods.Close()
//	pods.AddIndexes(byNode) // the copy keeps the indexes of all its leases
//
// All leases of one object type, resource and [listwatch.Scope] share a copy. Overlapping scopes,
// and one resource read as two Go types, are separate copies. It fails on bad options, if no client
// can be made of the config, and with [ErrStopped] after the end of the set.
func Acquire[O any, T interface {
	*O
	store.Object
}](s *Set, resource schema.GroupVersionResource, scope ...listwatch.Option) (*Lease[T], error) {
	if s == nil {
		return nil, errors.New("informer: Acquire: the set is nil: make it with NewSet")
	}
	key := copyKey{reflect.TypeFor[T](), resource, listwatch.ScopeOf(scope...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.optionErr != nil:
		return nil, s.optionErr
	case s.phase == ended:
		return nil, fmt.Errorf("informer: acquire %s: %w", key, ErrStopped)
	case resource.Version == "" || resource.Resource == "":
		return nil, fmt.Errorf("informer: acquire %s: give a version and the resource's plural name", key)
	}
	c := s.copies[key]
	if c == nil || c.hasEnded() { // an ended copy is not revived; its leases keep it
		client, err := s.clientLocked(resource.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("informer: acquire %s: %w", key, err)
		}
		i := New(listwatch.FromClient[O, T](client, resource.Resource, scope...),
			append(slices.Clone(s.options), func(o *options) { o.namespace = key.scope.Namespace() })...)
		c = &leased{key: key, informer: i, ended: make(chan struct{})}
		s.copies[key] = c
		if s.phase == running {
			s.start(c)
		}
	}
	c.leases++
	return newLease(s, c, c.informer.(*Informer[T])), nil
}

func (s *Set) clientLocked(version schema.GroupVersion) (rest.Interface, error) {
	if client, ok := s.clients[version]; ok {
		return client, nil
	}
	client, err := listwatch.NewRESTClient(s.config, version)
	if err == nil {
		s.clients[version] = client
	}
	return client, err
}

// release returns a lease; the last one ends the informer, and waits for that.
func (s *Set) release(c *leased) {
	s.mu.Lock()
	c.leases--
	last := c.leases == 0
	if last && s.copies[c.key] == c {
		delete(s.copies, c.key)
	}
	stop := c.stop
	if last && stop == nil { // Run has not started it, and will not
		close(c.ended)
	}
	s.mu.Unlock()
	if last && stop != nil {
		stop()
		<-c.ended
	}
}

func (c *leased) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
