package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// reply is the answer to a probe.
type reply[T store.Object] struct {
	claim
	first T    // zero if the list is empty, or its first object cannot be decoded
	some  bool // first is an object
	count int  // objects of the collection; -1 if the answer does not tell
}

// absent is an object held that the server did not have at a version. When the copy has reached
// that version, it must not hold the object any more.
type absent[T store.Object] struct {
	obj     T
	version store.Version
}

// singlesAgain is how many probes ask for no single object after the server has refused one. It may
// have been a passing trouble, and another history can agree in its first object and its size.
const singlesAgain = 30

// finder is a source that can ask for single objects.
type finder[T store.Object] interface {
	Lookup(ctx context.Context, namespace, name string) (listwatch.List[T], bool)
}

// inspect sends a probe, compares the answer with the copy, and returns the server's claim. Every
// second probe is for an object held, by chance: the first object of the collection may be the only
// one that is right.
func (r *Reflector[T]) inspect(ctx context.Context) (claim, error) {
	var held store.Snapshot[T]
	if copied, ok := r.store.(store.Snapshotter[T]); ok { // before the request: no answer is older
		held = copied.Snapshot()
	}
	if err := r.settle(held); err != nil {
		return claim{}, err
	}
	guard := stream.Start(ctx, min(probePatience, r.options.liveness), 0)
	defer guard.Stop()
	ctx = guard.Waiting(true, r.status.probeWaits) // the program's own requests go first
	list, obj, single := r.choose(ctx, held)
	got, err := ask(ctx, list, guard)
	if class := classify(err); single && (class == Refused || class == Forbidden || class == NotFound) {
		r.noSingles, single = singlesAgain, false // this server takes no such requests, for now
		got, err = ask(ctx, r.probes.List(ctx, metav1.ListOptions{Limit: 1}), guard)
	}
	at := store.Version(held.ResourceVersion())
	switch {
	case err != nil:
		return claim{}, err
	case at == "" || at == "0":
		return got.claim, nil // a source without versions
	case got.version == "" || got.version == "0":
		return claim{}, errNoVersion
	case got.version.Before(at):
		return claim{}, stream.ErrWentBack
	case got.some && r.status.explains(store.KeyOf(got.first)): // a relist will come in any case
		return got.claim, nil
	case !single:
		return got.claim, got.contradicts(held, r.finder() != nil && !r.status.explains(""))
	case got.some:
		return got.claim, got.agrees(held)
	case got.count > 0, r.status.explains(store.KeyOf(obj)): // it cannot be decoded
		return got.claim, nil
	case got.version == at:
		return claim{}, historyError{store.KeyOf(obj), "the server does not have it"}
	}
	r.absent = &absent[T]{obj, got.version}
	return got.claim, nil
}

// choose begins the LIST of a probe: of one object held, or of the collection with a limit of one.
func (r *Reflector[T]) choose(ctx context.Context, held store.Snapshot[T]) (list listwatch.List[T], obj T, single bool) {
	source := r.finder()
	r.noSingles = max(0, r.noSingles-1)
	if r.single = !r.single && r.noSingles == 0 && source != nil && held.Len() > 0; r.single {
		left := rand.IntN(held.Len())
		for key := range held.Keys() {
			if left--; left < 0 {
				obj, _ = held.Get(key)
				break
			}
		}
		if list, ok := source.Lookup(ctx, obj.GetNamespace(), obj.GetName()); ok {
			return list, obj, true
		}
	}
	return r.probes.List(ctx, metav1.ListOptions{Limit: 1}), obj, false
}

// finder is the source if it can ask for single objects. Such a source has all objects that its
// server counts; another one may leave some out.
func (r *Reflector[T]) finder() finder[T] {
	source, _ := r.probes.(finder[T])
	return source
}

// settle looks whether an object that the server did not have is still held, although the copy has
// passed that answer.
func (r *Reflector[T]) settle(held store.Snapshot[T]) error {
	gone := r.absent
	if gone == nil || !store.Version(held.ResourceVersion()).Reaches(gone.version) {
		return nil
	}
	r.absent = nil
	key := store.KeyOf(gone.obj)
	if r.status.explains(key) {
		return nil
	}
	if has, ok := held.Get(key); ok && has.GetUID() == gone.obj.GetUID() && has.GetResourceVersion() == gone.obj.GetResourceVersion() {
		return historyError{key, "the server did not have it at version " + string(gone.version)}
	}
	return nil
}

// ask sends a probe, and reads the answer.
func ask[T store.Object](ctx context.Context, list listwatch.List[T], guard *stream.Guard) (got reply[T], err error) {
	for obj, err := range list.Items {
		var unusable *listwatch.DecodeError
		if err != nil && !errors.As(err, &unusable) {
			return got, stream.Cause(ctx, err)
		}
		if got.count++; got.count == 1 && err == nil {
			got.first, got.some = obj, true
		}
		guard.Heard(time.Now())
	}
	meta := list.Meta()
	got.claim = claim{store.Version(meta.ResourceVersion), time.Now().Add(-guard.Lived())}
	switch {
	case meta.RemainingItemCount != nil:
		got.count += int(*meta.RemainingItemCount)
	case meta.Continue != "":
		got.count = -1
	}
	return got, nil
}

// contradicts compares an answer about the collection with the copy as it was before the request.
// The number of objects counts if the source leaves none out.
func (a reply[T]) contradicts(held store.Snapshot[T], counts bool) error {
	if a.some {
		if err := a.agrees(held); err != nil {
			return err
		}
	}
	if counts && a.count >= 0 && string(a.version) == held.ResourceVersion() && a.count != held.Len() {
		return driftError{fmt.Errorf("%d objects are held, and the server has %d at the same version", held.Len(), a.count)}
	}
	return nil
}

// agrees compares an object with the copy as it was before the request. The copy is complete up to
// its version: an object that was written before that must be held, and no other one.
func (a reply[T]) agrees(held store.Snapshot[T]) error {
	if !store.Version(held.ResourceVersion()).Reaches(store.VersionOf(a.first)) {
		return nil
	}
	key := store.KeyOf(a.first)
	switch has, ok := held.Get(key); {
	case !ok:
		return historyError{key, "it is not held"}
	case has.GetUID() != a.first.GetUID():
		return historyError{key, "the object held has another UID"}
	case has.GetResourceVersion() != a.first.GetResourceVersion():
		return historyError{key, fmt.Sprintf("version %s is held", has.GetResourceVersion())}
	default:
		return drift(key, has, a.first)
	}
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
