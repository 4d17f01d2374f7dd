package controllerruntime

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/store"
)

// writes are the writes to one kind that the cache may not show yet. They are kept for all forms of
// the kind: a write in one form is waited for in the others too.
type writes struct {
	cache   *Cache
	gvk     schema.GroupVersionKind
	configs map[string]cache.Config // the scope of the cache, by namespace

	mu      sync.Mutex
	pending map[client.ObjectKey]write // the last write to each object
	// floors are, by namespace, the newest versions of the writes that are pending no more. A view
	// that is not in past has not been asked for them, and must be complete there up to that.
	floors map[string]string
	past   map[scope]view
}

// scope is one namespace of a kind in one form.
type scope struct {
	form      form
	namespace string
}

// view is what readers of one form of a kind see: a collection, or the names of a lean kind.
type view interface {
	form() form
	// seen returns the object of a key as readers see it, or as they saw it last.
	seen(client.ObjectKey) (client.Object, bool)
	// waitFor blocks until readers see a write.
	waitFor(context.Context, write) error
	// waitUpTo blocks until readers see all writes up to a version in one namespace.
	waitUpTo(ctx context.Context, namespace, version string) error
}

// write is an object as a write has left it.
type write struct {
	key     client.ObjectKey
	uid     types.UID
	version string // of the write, or of a state before a deletion
	end     end
	since   string // the cache has begun to lack the object after this version, if end is not stays
}

type end uint8

const (
	stays end = iota
	deleted
	left // the scope of the cache
)

// maxPending bounds the memory of writes to objects that are never read.
const maxPending = 1000

// outcome is an object as the answer to a write shows it.
type outcome struct {
	metav1.Object
	whole   bool                  // it has its labels
	content func() map[string]any // nil if it has metadata only
}

// wrote notes that the object of that key was written.
func (w *writes) wrote(key client.ObjectKey, now outcome) {
	if now.GetResourceVersion() == "" {
		return
	}
	if now.whole && w.over(now) {
		w.deleted(key, now.GetUID(), &now)
		return
	}
	next := write{key: key, uid: now.GetUID(), version: now.GetResourceVersion()}
	config, ok := ofNamespace(w.configs, key.Namespace)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if outside := now.whole && !inScope(config, now); outside || !now.whole {
		before, known := w.knownLocked(key, next.uid)
		if !known {
			return // the cache has no such object, and gets none
		}
		if outside {
			next.end, next.since = left, before
		}
	}
	w.noteLocked(next)
}

// ofNamespaces is a kind that has finalizers in its spec, too.
var ofNamespaces = schema.GroupKind{Kind: "Namespace"}

// over reports whether the server has removed an object that it still answers with. Nothing holds
// up its deletion any more, such as after the update that removes the last finalizer.
func (w *writes) over(now outcome) bool {
	grace := now.GetDeletionGracePeriodSeconds()
	return now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 && (grace == nil || *grace == 0) &&
		w.gvk.GroupKind() != ofNamespaces
}

// deleted notes that the object of a key is no more. last is a state that it had, or nil.
func (w *writes) deleted(key client.ObjectKey, uid types.UID, last *outcome) {
	config, ok := ofNamespace(w.configs, key.Namespace)
	if !ok || uid == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	since, known := w.knownLocked(key, uid)
	if last != nil {
		switch in := inScope(config, *last); {
		case in && last.GetResourceVersion() != "":
			since = newer(since, last.GetResourceVersion())
		case !in && !known:
			return
		}
	}
	w.noteLocked(write{key: key, uid: uid, version: since, end: deleted, since: since})
}

// knownLocked reports whether the cache has the object or waits for it, and from which version on.
func (w *writes) knownLocked(key client.ObjectKey, uid types.UID) (version string, known bool) {
	if before, ok := w.pending[key]; ok && before.uid == uid {
		if before.end != stays {
			return before.since, true
		}
		return before.version, true
	}
	for held := range w.held(key) {
		if held.GetUID() == uid {
			return held.GetResourceVersion(), true
		}
	}
	return "1", false
}

// uid returns the UID of the object of a key, as far as it is known.
func (w *writes) uid(key client.ObjectKey) types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.pending[key]; ok {
		return before.uid
	}
	for held := range w.held(key) {
		return held.GetUID()
	}
	return ""
}

// held yields the object of a key as the cache has it, in each form.
func (w *writes) held(key client.ObjectKey) iter.Seq[client.Object] {
	return func(yield func(client.Object) bool) {
		for _, c := range w.cache.ofKind(w.gvk) {
			if obj, ok := c.seen(key); ok && !yield(obj) {
				return
			}
		}
	}
}

// noteLocked makes next the last write to its object, unless a later one has been noted: goroutines
// may note their writes in another order than the server had.
func (w *writes) noteLocked(next write) {
	if before, ok := w.pending[next.key]; ok {
		if before.uid == next.uid && before.end == deleted {
			return
		}
		if store.Version(next.version).Before(store.Version(before.version)) {
			return
		}
	}
	w.pending[next.key] = next
	if len(w.pending) <= maxPending {
		return
	}
	for _, each := range w.pending {
		w.forgetLocked(each)
	}
	if len(w.pending) > maxPending/2 { // far behind: ask for all of them at once
		for _, each := range w.pending {
			w.raiseLocked(each)
		}
		clear(w.pending)
		clear(w.past)
	}
}

// forgetLocked drops a write that all collections of the kind show.
func (w *writes) forgetLocked(each write) {
	if w.pending[each.key] != each {
		return // there is a later one
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	all := w.cache.ofKind(w.gvk)
	for _, c := range all {
		if c.waitFor(done, each) != nil {
			return
		}
	}
	delete(w.pending, each.key)
	for _, c := range all {
		if place := (scope{c.form(), each.key.Namespace}); w.floors[place.namespace] == "" {
			w.past[place] = c
		}
	}
	w.raiseLocked(each)
}

// raiseLocked notes that a write is pending no more. Of too many namespaces it keeps one floor.
func (w *writes) raiseLocked(each write) {
	w.floors[each.key.Namespace] = newer(w.floors[each.key.Namespace], each.version)
	if len(w.floors) <= maxPending {
		return
	}
	all := ""
	for _, floor := range w.floors {
		all = newer(all, floor)
	}
	clear(w.floors)
	clear(w.past)
	w.floors[metav1.NamespaceAll] = all
}

// reads are the objects that a read may return.
type reads struct{ namespace, name string } // empty: all

// in reports whether a read may return objects of a namespace, or of the whole cluster: a read of
// those may name a namespace, which counts for nothing.
func (r reads) in(namespace string) bool {
	return r.namespace == "" || namespace == "" || r.namespace == namespace
}

// unseen returns the writes that a read must show, and the floors.
func (w *writes) unseen(r reads) (found []write, floors map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, each := range w.pending {
		if r.in(key.Namespace) && (r.name == "" || r.name == key.Name) {
			found = append(found, each)
		}
	}
	for namespace, floor := range w.floors {
		if r.in(namespace) {
			if floors == nil {
				floors = map[string]string{}
			}
			floors[namespace] = floor
		}
	}
	return found, floors
}

// wait blocks until a view shows the writes found, and those up to the floors.
func (w *writes) wait(ctx context.Context, c view, found []write, floors map[string]string) error {
	w.mu.Lock()
	maps.DeleteFunc(floors, func(namespace, _ string) bool { return w.past[scope{c.form(), namespace}] == c })
	w.mu.Unlock()
	for namespace, floor := range floors {
		if err := c.waitUpTo(ctx, namespace, floor); err != nil {
			return w.unseenBy(c, err)
		}
	}
	for _, each := range found {
		if err := c.waitFor(ctx, each); err != nil {
			return w.unseenBy(c, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for namespace, floor := range floors {
		if w.floors[namespace] == floor {
			w.past[scope{c.form(), namespace}] = c
		}
	}
	for _, each := range found {
		w.forgetLocked(each)
	}
	return nil
}

// unseenBy is the error of a wait, with the failure that keeps the view behind.
func (w *writes) unseenBy(c view, err error) error {
	if held, ok := c.(*collection); ok {
		if s := held.copy.Status().Status; s.Err != nil {
			err = fmt.Errorf("%w (%w)", err, held.cause(s))
		}
	}
	return fmt.Errorf("controllerruntime: read own writes of %s: %w", w.gvk.Kind, err)
}

func (s shape) form() form { return s.kind.form }

func (c *collection) seen(key client.ObjectKey) (client.Object, bool) {
	return c.held(store.Key(key.Namespace, key.Name))
}

// waitUpTo waits for an object that nobody has: that ends once the collection is complete up to its
// version there. The empty namespace is all.
func (c *collection) waitUpTo(ctx context.Context, namespace, version string) error {
	if namespace == metav1.NamespaceAll && !c.root {
		return c.copy.WaitForResourceVersion(ctx, version)
	}
	return c.waitFor(ctx, write{key: client.ObjectKey{Namespace: namespace, Name: "-"}, version: version})
}

// object is as much of the object as a wait needs.
func (w write) object() object {
	version := w.version
	if w.end != stays {
		version = w.since
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.key.Namespace, Name: w.key.Name, UID: w.uid, ResourceVersion: version,
	}}
}

func (c *collection) waitFor(ctx context.Context, each write) error {
	waits, ok := ofNamespace(c.waits, each.key.Namespace)
	if !ok {
		return nil
	}
	if each.end == stays {
		return waits.WaitFor(ctx, each.object())
	}
	return waits.WaitForDeletion(ctx, each.object())
}

// inScope reports whether a cache of this configuration has an object, as far as the object shows.
func inScope(config cache.Config, now outcome) bool {
	if config.LabelSelector != nil && !config.LabelSelector.Matches(labels.Set(now.GetLabels())) {
		return false
	}
	if config.FieldSelector == nil {
		return true
	}
	var content map[string]any
	for _, term := range config.FieldSelector.Requirements() {
		var values []string
		switch {
		case term.Field == "metadata.name":
			values = []string{now.GetName()}
		case term.Field == "metadata.namespace":
			values = []string{now.GetNamespace()}
		case now.content == nil:
			continue // only the server can tell
		default:
			if content == nil {
				content = now.content()
			}
			values = valuesAt(content, term.Field)
		}
		selected := func(value string) bool { return (value == term.Value) != (term.Operator == selection.NotEquals) }
		if !slices.ContainsFunc(values, selected) {
			return false
		}
	}
	return true
}

// valuesAt returns the values that the server may see in the field at a path of an object. A field
// that is absent has a default.
func valuesAt(content map[string]any, path string) []string {
	value, found, err := unstructured.NestedFieldNoCopy(content, strings.Split(path, ".")...)
	if err != nil || !found {
		return []string{"", "false", "0"}
	}
	return []string{fmt.Sprint(value)}
}

// newer returns the newer of two versions. If they cannot be compared, it returns none: no read
// could wait for it.
func newer(a, b string) string {
	if _, comparable := store.Version(b).Compare(store.Version(b)); !comparable {
		return ""
	}
	if a == "" || store.Version(a).Before(store.Version(b)) {
		return b
	}
	return a
}
