package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// reply is what the server said to a probe.
type reply struct {
	claim
	objects map[string]identity // by key
	last    string              // the last key
	after   string              // it continues a reply up to this key
	next    string              // the continue token
	// garbled: there was more, which cannot be decoded. unordered: the keys were not in order.
	garbled, unordered bool
}

// identity is a state of an object, without its content.
type identity struct {
	uid     types.UID
	version store.Version
}

func identityOf(obj store.Object) identity { return identity{obj.GetUID(), store.VersionOf(obj)} }

// absent is an object held that the server did not have at a version. When the cache has reached
// that version, it must not hold the object any more.
type absent struct {
	identity
	at store.Version
}

// singlesAgain is how many probes ask for no single object after the server has refused one.
const singlesAgain = 30

// noName is asked for when nothing is held: an empty list names the version as well.
const noName = "tributary-asks-for-the-version"

// finder is a source that can ask for single objects.
type finder[T store.Object] interface {
	Lookup(ctx context.Context, namespace, name string) (listwatch.List[T], bool)
}

// finds prepares the probes for single objects. Where nothing was held yet, the name's namespace is
// that of the collection, or one that each server has.
func (r *Reflector[T]) finds(ctx context.Context) {
	r.namespace = metav1.NamespaceDefault
	if named, ok := r.source.(interface{ Collection() (_, namespace string) }); ok {
		_, namespace := named.Collection()
		r.namespace = cmp.Or(namespace, r.namespace)
	}
	if source, ok := r.probes.(finder[T]); ok {
		if _, ok := source.Lookup(ctx, r.namespace, noName); ok { // nothing is sent yet
			r.finder = source
		}
	}
}

// byName asks for one object held, by chance, and compares all of it. Whatever the selectors of the
// collection, an API server reads one key for that. A source that cannot ask so is asked for its
// first object.
func (r *Reflector[T]) byName(ctx context.Context) (claim, error) {
	held := r.content()
	var first T
	keep := func(obj T) {
		if pointer.None(first) {
			first = obj
		}
	}
	if r.noSingles = max(0, r.noSingles-1); r.noSingles == 0 && r.finder != nil {
		key, namespace, name := r.choose(held)
		got, err := ask(ctx, r, keep, func(ctx context.Context) listwatch.List[T] {
			list, _ := r.finder.Lookup(ctx, namespace, name)
			return list
		})
		switch class := classify(err); {
		// it takes no such requests, for now
		case class == Refused, class == Forbidden, class == NotFound:
			r.noSingles = singlesAgain
		case err != nil:
			return claim{}, err
		default:
			return got.claim, r.agrees(held, got, first, func(held string) bool { return held == key })
		}
	}
	got, err := ask(ctx, r, keep, func(ctx context.Context) listwatch.List[T] {
		return r.probes.List(ctx, metav1.ListOptions{Limit: 1})
	})
	if err != nil {
		return claim{}, err
	}
	return got.claim, r.agrees(held, got, first, nil)
}

// choose names an object held, or one that nobody has.
func (r *Reflector[T]) choose(held store.Snapshot[T]) (key, namespace, name string) {
	left := rand.IntN(max(1, held.Len()))
	for key := range held.Keys() {
		if left--; left < 0 {
			obj, _ := held.Get(key)
			r.namespace = obj.GetNamespace()
			return key, r.namespace, obj.GetName()
		}
	}
	return "", r.namespace, noName
}

// content is that of the store, before a request: no answer is older. It is empty, and has no
// version, if the store has no snapshots.
func (r *Reflector[T]) content() (held store.Snapshot[T]) {
	if copied, ok := r.store.(store.Snapshotter[T]); ok {
		held = copied.Snapshot()
	}
	return held
}

// ask sends a probe, and reads the answer.
func ask[T, O store.Object](ctx context.Context, r *Reflector[T], keep func(O), begin func(context.Context) listwatch.List[O]) (reply, error) {
	guard := stream.Start(ctx, min(probePatience, r.options.liveness), 0)
	defer guard.Stop()
	ctx = guard.Waiting(true, r.status.probeWaits)
	list := begin(ctx) // the program's own requests go first
	got := reply{objects: map[string]identity{}}
	for obj, err := range list.Items {
		switch {
		case err == nil:
			key := store.KeyOf(obj)
			if len(got.objects) > 0 && key <= got.last {
				got.unordered = true
			}
			got.last, got.objects[key] = key, identityOf(obj)
			keep(obj)
		case errors.As(err, new(*listwatch.DecodeError)):
			got.garbled = true
		default:
			return got, stream.Cause(ctx, err)
		}
		guard.Heard(time.Now())
	}
	meta := list.Meta()
	got.claim, got.next = claim{store.Version(meta.ResourceVersion), time.Now().Add(-guard.Lived())}, meta.Continue
	return got, nil
}

// agrees compares an answer with the content of before the request, which is complete up to its
// version: an object that was written before that must be held, and no other one. The answer must
// have each object held whose key is wanted, and its first one is compared as a whole.
func (r *Reflector[T]) agrees(held store.Snapshot[T], got reply, first T, wanted func(key string) bool) error {
	at := store.Version(held.ResourceVersion())
	switch {
	case at == "" || at == "0":
		return nil // a source without versions
	case got.version == "" || got.version == "0":
		return errNoVersion
	case got.version.Before(at) && got.after == "":
		return stream.ErrWentBack
	}
	for key, id := range got.objects {
		has, ok := held.Get(key)
		switch {
		case r.status.explains(key): // a relist will come in any case
		case !at.Reaches(id.version), !ok && got.version.Before(at), ok && got.version.Before(store.VersionOf(has)):
			// It was written or deleted between the two.
		case !ok:
			return historyError{key, "it is not held"}
		case has.GetUID() != id.uid:
			return historyError{key, "the object held has another UID"}
		case store.VersionOf(has) != id.version:
			return historyError{key, fmt.Sprintf("version %s is held", has.GetResourceVersion())}
		case !pointer.None(first) && key == store.KeyOf(first):
			if err := drift(key, has, first); err != nil {
				return err
			}
		}
	}
	if wanted != nil && !got.garbled {
		r.misses(held, got, wanted)
	}
	return r.settle(held)
}

// misses notes the objects held that an answer should have.
func (r *Reflector[T]) misses(held store.Snapshot[T], got reply, wanted func(key string) bool) {
	for key := range held.Keys() {
		if _, has := got.objects[key]; has || !wanted(key) {
			continue
		}
		if obj, ok := held.Get(key); ok && !got.version.Before(store.VersionOf(obj)) {
			if r.absent == nil {
				r.absent = map[string]absent{}
			}
			r.absent[key] = absent{identityOf(obj), got.version}
		}
	}
}

// settle looks whether an object that the server did not have is still held, although the cache has
// passed that answer.
func (r *Reflector[T]) settle(held store.Snapshot[T]) error {
	for key, gone := range r.absent {
		if !store.Version(held.ResourceVersion()).Reaches(gone.at) {
			continue
		}
		delete(r.absent, key)
		if has, ok := held.Get(key); ok && identityOf(has) == gone.identity && !r.status.explains(key) {
			return historyError{key, "the server did not have it at version " + string(gone.at)}
		}
	}
	return nil
}

// drift compares two objects of one version. Objects that are kept as bytes are decoded.
func drift[T store.Object](key string, held, came T) error {
	var a, b store.Object = held, came
	if kept, ok := a.(*store.Encoded); ok && kept.Keeper != nil {
		a, b = kept.Keeper.Open(kept), kept.Keeper.Open(b.(*store.Encoded))
	}
	if content.Equal(a, b) {
		return nil
	}
	return driftError{fmt.Errorf("%s differs from the server's in %s, at the same version", key, content.Difference(a, b))}
}

// historyError is an object that shows another history.
type historyError struct{ key, why string }

func (e historyError) Error() string {
	return fmt.Sprintf("%s contradicts the copy: %s: another cluster answers, or one that was restored", e.key, e.why)
}

// driftError is a difference from the server under equal versions.
type driftError struct{ err error }

func (e driftError) Error() string { return "the copy differs from the server: " + e.err.Error() }
func (e driftError) Unwrap() error { return e.err }
