package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store"
)

// names are the whole objects of a lean kind in one form: those that are read by name.
type names struct {
	shape
	refs *refs.Refs[object]
	idle time.Duration
	// metadata returns the synced collection of the kind's metadata, if the program has asked for
	// it.
	metadata func() *collection
	stop     context.CancelFunc // guarded by the cache's lock
	// told is closed by the first reader that wants to know of changes.
	told  chan struct{}
	first sync.Once

	mu       sync.Mutex
	followed map[client.ObjectKey]*name
}

// name is a name that is followed. The lock of names guards it.
type name struct {
	gets    int       // under way
	used    time.Time // the end of the last one
	seen    state     // that the last one has returned
	latest  state     // that the watch has told last
	readers map[reader]state
}

// state identifies a state of an object.
type state struct {
	uid     types.UID
	version string
}

// absent is the state of an object that does not exist. The zero state is not known.
var absent = state{version: "absent"}

func stateOf(obj object) state {
	if obj == nil {
		return absent
	}
	return state{obj.GetUID(), obj.GetResourceVersion()}
}

func newNames(k kind, like runtime.Object, s settings, from sources, idle time.Duration, metadata func() *collection) (*names, error) {
	shape, example, mapping, err := newShape(k, like, s, from)
	if err != nil {
		return nil, err
	}
	source, err := from.byName(shape, example, mapping)
	if err != nil {
		return nil, err
	}
	n := &names{
		shape: shape, idle: idle, metadata: metadata, stop: func() {}, told: make(chan struct{}), followed: map[client.ObjectKey]*name{},
	}
	// A name without an owner is forgotten, so no watch needs to be idle.
	n.refs = refs.New(source, refs.WithIdle(0), refs.WithLogger(logger().WithValues("kind", k.String())))
	return n, nil
}

// byName returns the source of a kind's objects by name. Each is decoded into memory of its own, so
// that an object that is let go leaves nothing.
func (s sources) byName(of shape, example object, mapping *meta.RESTMapping) (refs.Source[object], error) {
	client, err := s.clientOf(of.kind)
	if err != nil {
		return refs.Source[object]{}, err
	}
	return refs.Source[object]{Objects: func(namespace string) listwatch.ListerWatcher[object] {
		config, _ := of.config(namespace)
		source := s.by(client, of.kind, example, mapping, namespace, config, listwatch.WithoutSharing())
		if config.FieldSelector == nil || config.FieldSelector.Empty() {
			return source
		}
		return narrowed{source, config.FieldSelector}
	}}, nil
}

// narrowed adds a field selector to that of the request.
type narrowed struct {
	listwatch.ListerWatcher[object]
	selector fields.Selector
}

func (n narrowed) narrow(request metav1.ListOptions) metav1.ListOptions {
	request.FieldSelector += "," + n.selector.String()
	return request
}

func (n narrowed) List(ctx context.Context, request metav1.ListOptions) listwatch.List[object] {
	return n.ListerWatcher.List(ctx, n.narrow(request))
}

func (n narrowed) Watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[listwatch.Event[object], error] {
	return n.ListerWatcher.Watch(ctx, n.narrow(request))
}

func (n narrowed) IsWatchListSemanticsUnSupported() bool {
	return !watchlist.Supported(n.ListerWatcher)
}

// run follows names until ctx ends.
func (n *names) run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { n.tell(ctx) })
	parts.Go(func() { n.patrol(ctx) })
	if err := n.refs.Run(ctx); err != nil {
		logger().Error(err, "A lean kind is not followed", "kind", n.kind.String())
	}
	parts.Wait()
}

func (n *names) get(ctx context.Context, key client.ObjectKey, out client.Object, options *client.GetOptions) error {
	if n.root {
		key.Namespace = ""
	}
	config, ok := n.config(key.Namespace)
	if !ok {
		return n.unknownNamespace("get", key.Namespace)
	}
	obj, seen, err := n.read(ctx, key, config)
	noteRead(ctx, place{n, key}, seen)
	if err != nil {
		return err
	}
	return n.give(obj, key, out, uncopied(config, options.UnsafeDisableDeepCopy))
}

// read returns an object that is as new as the kind's metadata, lest a reconcile of an event finds
// an object from before the event.
func (n *names) read(ctx context.Context, key client.ObjectKey, config cache.Config) (obj object, seen state, err error) {
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if !inScope(cache.Config{FieldSelector: config.FieldSelector}, outcome{Object: named}) {
		return nil, absent, n.notFound(key)
	}
	var known object
	all := n.metadata()
	if all != nil {
		if known, _ = all.held(store.Key(key.Namespace, key.Name)); known == nil && !n.follows(key) {
			return nil, absent, n.notFound(key)
		}
	}
	held := n.hold(key)
	defer func() { n.release(held, seen) }()
	for {
		obj, seen, err = n.ask(ctx, key)
		if known != nil && behind(obj, seen, known) {
			if err := n.refs.WaitFor(ctx, known); err != nil {
				return nil, state{}, n.failed(key, err)
			}
			obj, seen, err = n.ask(ctx, key)
		}
		if err != nil || all == nil || !all.reached(key, seen) {
			return obj, seen, err
		}
		latest, exists := all.held(store.Key(key.Namespace, key.Name))
		switch {
		case !exists:
			n.overrule(held)
			return nil, absent, n.notFound(key)
		case known != nil || !behind(obj, seen, latest):
			return obj, seen, nil
		}
		known = latest // created since the metadata were asked, after the deletion of obj
	}
}

// behind reports whether a state may be older than an object that the metadata have told.
func behind(obj object, seen state, known object) bool {
	if obj == nil {
		return seen == absent
	}
	return !store.VersionOf(obj).Reaches(store.VersionOf(known))
}

// reached reports whether a collection has the state of an object, or a later one.
func (c *collection) reached(key client.ObjectKey, of state) bool {
	past, cancel := context.WithCancel(context.Background())
	cancel()
	return c.waitFor(past, write{key: key, uid: of.uid, version: of.version}) == nil
}

// overrule notes that the metadata have told a deletion that the watch of the name will tell.
func (n *names) overrule(held *name) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held.latest = absent
}

func (n *names) follows(key client.ObjectKey) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.followed[key] != nil
}

// ask answers as a cache of all objects would: with the last known state if the server cannot be
// asked.
func (n *names) ask(ctx context.Context, key client.ObjectKey) (object, state, error) {
	obj, err := n.refs.Get(ctx, key.Namespace, key.Name)
	var why *refs.Error
	var status *apierrors.StatusError
	switch {
	case err == nil:
	case !errors.As(err, &why):
		return nil, state{}, n.failed(key, err)
	case why.Class == reflector.NotFound && errors.As(err, &status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == key.Name:
		return nil, absent, n.notFound(key)
	case ctx.Err() == nil && !why.Since.IsZero():
		if obj == nil {
			return nil, absent, n.notFound(key)
		}
	case why.Class == reflector.NotFound:
		// The resource: apierrors.IsNotFound must not be true, since the object may exist.
		return nil, state{}, fmt.Errorf("controllerruntime: get %s %s: %w: %v", n.kind.Kind, key, n.noKind(), err)
	default:
		return nil, state{}, n.failed(key, err)
	}
	return obj, stateOf(obj), nil
}

func (n *names) failed(key client.ObjectKey, err error) error {
	return fmt.Errorf("controllerruntime: get %s %s: %w", n.kind.Kind, key, err)
}

// hold follows a name until release, and as long as it is not idle.
func (n *names) hold(key client.ObjectKey) *name {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.followLocked(key)
	held.gets++
	return held
}

func (n *names) release(held *name, seen state) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held.gets--
	held.used = time.Now()
	if seen != (state{}) {
		held.seen = seen
	}
}

// followLocked returns the entry of a name. Each name is an owner of itself, so that it is let go
// alone.
func (n *names) followLocked(key client.ObjectKey) *name {
	held := n.followed[key]
	if held == nil {
		held = &name{readers: map[reader]state{}, used: time.Now()}
		n.followed[key] = held
		n.refs.AddNames(ownerOf(key), refs.Names{key})
	}
	return held
}

func ownerOf(key client.ObjectKey) types.UID { return types.UID(key.String()) }

// patrol lets names go that are not read any more.
func (n *names) patrol(ctx context.Context) {
	if n.idle == 0 {
		return
	}
	ticker := time.NewTicker(max(n.idle/5, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		n.letGo(n.metadata())
	}
}

// letGo lets idle names go, unless the metadata are behind: a read would not find the object then.
func (n *names) letGo(all *collection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, held := range n.followed {
		switch {
		case held.gets > 0 || len(held.readers) > 0 || time.Since(held.used) <= n.idle:
		case all != nil && held.seen.uid != "" && !all.reached(key, held.seen):
		default:
			delete(n.followed, key)
			n.refs.SetOwner(ownerOf(key), nil)
		}
	}
}

// seen implements view.
func (n *names) seen(key client.ObjectKey) (client.Object, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.followed[key]
	if held == nil || held.seen.uid == "" {
		return nil, false
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: held.seen.uid, ResourceVersion: held.seen.version,
	}}, true
}

// waitFor implements view. A name that is not followed needs no wait: the next Get reads the
// server's newest state.
func (n *names) waitFor(ctx context.Context, each write) error {
	if all := n.metadata(); all != nil {
		if err := all.waitFor(ctx, each); err != nil {
			return err
		}
	}
	n.mu.Lock()
	held := n.followed[each.key]
	if held == nil {
		n.mu.Unlock()
		return nil
	}
	held.gets++
	n.mu.Unlock()
	defer n.release(held, state{})
	if each.end == stays {
		return n.refs.WaitFor(ctx, each.object())
	}
	return n.refs.WaitForDeletion(ctx, each.object())
}

// waitUpTo implements view. The next Get of each name reads it again, which is sooner than a
// bookmark of that version.
func (n *names) waitUpTo(ctx context.Context, namespace, version string) error {
	if all := n.metadata(); all != nil {
		if err := all.waitUpTo(ctx, namespace, version); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(refs.Names, 0, len(n.followed))
	for key := range n.followed {
		if namespace == metav1.NamespaceAll || key.Namespace == namespace {
			all = append(all, key)
		}
	}
	const again = "read again"
	n.refs.AddNames(again, all)
	n.refs.SetOwner(again, nil)
	return nil
}
