package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Set shares informers within a process: whoever needs a collection [Acquire]s it, and those who need the same one share
// one copy and one watch, until the last of them has closed its [Lease]. Make one per cluster with [NewSet] and call Run
// once; all else is safe for concurrent use, at any time.
type Set struct {
	config    *rest.Config
	options   []Option
	optionErr error

	mu      sync.Mutex
	phase   phase
	copies  map[copyKey]*leased
	clients map[schema.GroupVersion]rest.Interface
	start   func(*leased) // set while Run runs
	running sync.WaitGroup
}

// copyKey is what a copy is shared by.
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
		Ready(time.Duration) error
		Status() Status
	}
	leases int                // guarded by the set's lock
	stop   context.CancelFunc // likewise; nil until it was started
	ended  chan struct{}      // closed once Run has returned
	err    error              // what Run returned
}

// NewSet makes a set whose informers read from the server of config, one REST client per group version. The options are
// for each of its informers; of indexes, each takes those of its own object type: declare here all that the program uses.
// What is wrong with either is an error of [Acquire] and of Run.
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

var errNoConfig = errors.New("informer: NewSet: the config is nil")

// Run runs the informers that are leased, now and later, until ctx ends, which is no error. It blocks, and everything it
// started has ended when it returns. It fails at once on bad options or a second call, and with a *[PanicError] on the
// panic of any lease's handler, unless that is isolated ([WithIsolation]). What goes wrong between one informer and the
// server concerns nobody else: it shows in the Status of that one.
func (s *Set) Run(ctx context.Context) error {
	if s.optionErr != nil {
		return s.optionErr
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := s.begin(ctx, fail); err != nil {
		return err
	}
	<-ctx.Done()
	s.mu.Lock()
	s.phase = ended
	s.mu.Unlock()
	s.running.Wait()
	var panicked *PanicError
	if errors.As(context.Cause(ctx), &panicked) {
		return panicked
	}
	return nil
}

func (s *Set) begin(ctx context.Context, fail context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return errors.New("informer: Set.Run was called twice: make a new set for each run")
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

// Status is the health of each copy that is leased now, ordered by name. It does not block.
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

// Ready returns nil when all copies that are leased are ready, as [Informer.Ready] says, else what is wrong with which. A
// set can be given to [reflector.ReadyHandler].
func (s *Set) Ready(maxStaleness time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for key, c := range s.copies {
		if err := c.informer.Ready(maxStaleness); err != nil {
			all = append(all, fmt.Errorf("%s: %w", key, err))
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// CopyStatus is the health of one copy of a [Set].
type CopyStatus struct {
	// Name says what is copied: resource, Go type and scope. It is the same for the same copy, and no other has it.
	Name string
	// Leases is how many share the copy.
	Leases int
	// Status is that of its informer, with the handlers of all leases.
	Status
}

// Acquire leases a copy of a resource, narrowed by options as [listwatch.FromClient] takes them; O is the object's struct
// type, as there. It does not block and asks the server nothing: the copy begins with the first lease, or with Run.
//
//	pods, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"), listwatch.InNamespace("ns"))
//	defer pods.Close()
//
// The copy is shared by all who ask for the same object type, resource and [listwatch.Scope]. Scopes that overlap are
// copies of their own, and so is the same resource as another type. It fails on bad options, on a config of which no
// client can be made, and with [ErrStopped] after the end of the set.
func Acquire[O any, T interface {
	*O
	store.Object
}](s *Set, resource schema.GroupVersionResource, scope ...listwatch.Option) (*Lease[T], error) {
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
	if c == nil || c.hasEnded() { // one that ended by itself is not revived, and whoever has a lease of it keeps that
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

// release gives a lease back; with the last one it ends the informer, and waits for that.
func (s *Set) release(c *leased) {
	s.mu.Lock()
	c.leases--
	last := c.leases == 0
	if last && s.copies[c.key] == c {
		delete(s.copies, c.key)
	}
	stop := c.stop
	if last && stop == nil { // Run has not come to it, and will not
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
