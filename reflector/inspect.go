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
	held := r.content() // before the request: no answer is older
	if r.noSingles = max(0, r.noSingles-1); r.noSingles == 0 && r.finder != nil {
		key, namespace, name := r.choose(held)
		got, first, err := ask(ctx, r, func(ctx context.Context) listwatch.List[T] {
			list, _ := r.finder.Lookup(ctx, namespace, name)
			return list
		})
		switch class := Classify(err); {
		// it takes no such requests, for now
		case class == Refused, class == Forbidden, class == NotFound:
			r.noSingles = singlesAgain
		case err != nil:
			return claim{}, err
		default:
			return got.claim, r.agrees(held, got, first, func(held string) bool { return held == key })
		}
	}
	got, first, err := ask(ctx, r, func(ctx context.Context) listwatch.List[T] {
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

// ask sends a probe, and reads the answer, of which it keeps the first object.
func ask[T, O store.Object](ctx context.Context, r *Reflector[T], begin func(context.Context) listwatch.List[O]) (got reply, first O, err error) {
	guard := stream.Start(ctx, min(probePatience, r.options.liveness), 0)
	defer guard.Stop()
	ctx = guard.Waiting(true, r.status.probeWaits)
	list := begin(ctx) // the program's own requests go first
	got.objects = map[string]identity{}
	for obj, err := range list.Items {
		switch {
		case err == nil:
			key := store.KeyOf(obj)
			if len(got.objects) == 0 {
				first = obj
			}
			got.unordered = got.unordered || key <= got.last
			got.last, got.objects[key] = key, identityOf(obj)
		case errors.As(err, new(*listwatch.DecodeError)):
			got.garbled = true
		default:
			return got, first, stream.Cause(ctx, err)
		}
		guard.Heard(time.Now())
	}
	meta := list.Meta()
	got.claim, got.next = claim{store.Version(meta.ResourceVersion), time.Now().Add(-guard.Lived())}, meta.Continue
	return got, first, nil
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
			return historyError(key, "it is not held")
		case has.GetUID() != id.uid:
			return historyError(key, "the object held has another UID")
		case store.VersionOf(has) != id.version:
			return historyError(key, fmt.Sprintf("version %s is held", has.GetResourceVersion()))
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
			return historyError(key, "the server did not have it at version "+string(gone.at))
		}
	}
	return nil
}

// drift compares two objects of one version. Objects that are kept as bytes are decoded.
func drift[T store.Object](key string, held, came T) error {
	var a, b store.Object = held, came
	if kept, ok := a.(*store.Encoded); ok && kept.Entry != nil {
		a, b = kept.Open(kept), kept.Open(b.(*store.Encoded))
	}
	if content.Equal(a, b) {
		return nil
	}
	return driftError(fmt.Errorf("%s differs from the server's in %s, at the same version", key, content.Difference(a, b)))
}

const (
	// sweepPage is how many objects are compared at once, at least.
	sweepPage = stream.ProbePage
	// sweepPages is how many pages a sweep has at most: at one each probePause, it ends before the
	// server forgets the continue token (5 minutes).
	sweepPages = 40
	// sweepWhole is the page that follows a token which has expired all the same.
	sweepWhole = 1_000_000
)

// sweep is a comparison of the objects held with the server's, by their metadata and page by page.
// It finds another history that fits the versions, such as that of an etcd that was restored, and
// that has passed the version held.
type sweep struct {
	state sweepState
	asked time.Time // for the first page
	limit int64     // objects of a page
	last  string    // the last key of the pages so far
	next  string    // the continue token of the next page
}

type sweepState uint8

const (
	swept    sweepState = iota // none is under way
	sweeping                   // a page is due
	// objects that the server did not have may still be deleted by events
	settling
)

// lister is a source that can list metadata alone, which costs less than objects.
type lister interface {
	Metadata(ctx context.Context, options metav1.ListOptions) (listwatch.List[*metav1.PartialObjectMetadata], bool)
}

// sweeps reads the next page of a sweep, if one is due or under way. The claim is that of the first
// page, and else empty.
func (r *Reflector[T]) sweeps(ctx context.Context, now time.Time, plan schedule) (claim, error) {
	held, s := r.content(), &r.sweep
	if s.state == swept && plan.sweep || s.state != swept && s.asked.Before(plan.cut) {
		clear(r.absent)
		*s = sweep{state: sweeping, asked: now, limit: int64(max(sweepPage, held.Len()/sweepPages))}
	}
	if s.state != sweeping {
		return claim{}, r.swept(held)
	}
	got, err := r.page(ctx, metav1.ListOptions{Limit: s.limit, Continue: s.next})
	if err != nil {
		if Classify(err) == Expired && s.next != "" { // all in one piece
			*s = sweep{state: sweeping, asked: now, limit: sweepWhole}
			return claim{}, nil
		}
		return claim{}, err
	}
	first, last := s.next == "", got.next == ""
	got.after = s.last
	wanted := func(key string) bool { return key > got.after && (last || key <= got.last) }
	if got.unordered && !(first && last) {
		wanted = nil
	}
	var none T
	if err := r.agrees(held, got, none, wanted); err != nil {
		*s = sweep{}
		return claim{}, err
	}
	if s.last, s.next = max(s.last, got.last), got.next; last || !plan.interrupted {
		s.state = settling
	}
	if !first { // the version is that of the first page
		got.claim = claim{}
	}
	return got.claim, r.swept(held)
}

// page asks for some of the objects.
func (r *Reflector[T]) page(ctx context.Context, options metav1.ListOptions) (got reply, err error) {
	if source, ok := r.probes.(lister); ok {
		if _, ok := source.Metadata(ctx, options); ok { // nothing is sent yet
			got, _, err = ask(ctx, r, func(ctx context.Context) listwatch.List[*metav1.PartialObjectMetadata] {
				list, _ := source.Metadata(ctx, options)
				return list
			})
			if err != nil || !got.garbled { // else some can be read as the copy does alone
				return got, err
			}
		}
	}
	got, _, err = ask(ctx, r, func(ctx context.Context) listwatch.List[T] { return r.probes.List(ctx, options) })
	return got, err
}

// swept ends a sweep once nothing is left to be settled.
func (r *Reflector[T]) swept(held store.Snapshot[T]) error {
	if err := r.settle(held); err != nil {
		r.sweep = sweep{}
		return err
	}
	if r.sweep.state != settling || len(r.absent) > 0 {
		return nil
	}
	if r.status.compare(r.sweep.asked) {
		r.recovered()
	}
	r.sweep = sweep{}
	return nil
}
