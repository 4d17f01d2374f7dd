package reflector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

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
// page, and else empty. shared: another cache has asked for the version.
func (r *Reflector[T]) sweeps(ctx context.Context, now time.Time, shared bool) (claim, error) {
	held, s := r.content(), &r.sweep
	cut, compared := r.status.comparison()
	interrupted := compared.Before(cut)
	alone := !shared || now.Sub(r.prober.own) >= ownProbe
	due := interrupted || r.origin.contradicted(compared) ||
		// by turns with a single object
		alone && now.Sub(compared) >= ownProbe && r.prober.own.After(compared)
	if s.state == swept && due || s.state != swept && s.asked.Before(cut) {
		clear(r.absent)
		*s = sweep{state: sweeping, asked: now, limit: int64(max(sweepPage, held.Len()/sweepPages))}
	}
	if s.state != sweeping {
		return claim{}, r.swept(held)
	}
	got, err := r.page(ctx, metav1.ListOptions{Limit: s.limit, Continue: s.next})
	if err != nil {
		if classify(err) == Expired && s.next != "" { // all in one piece
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
	if s.last, s.next = max(s.last, got.last), got.next; last || !interrupted {
		s.state = settling
	}
	if !first { // the version is that of the first page
		got.claim = claim{}
	}
	return got.claim, r.swept(held)
}

// page asks for some of the objects.
func (r *Reflector[T]) page(ctx context.Context, options metav1.ListOptions) (reply, error) {
	if source, ok := r.probes.(lister); ok {
		if _, ok := source.Metadata(ctx, options); ok { // nothing is sent yet
			return ask(ctx, r, func(*metav1.PartialObjectMetadata) {}, func(ctx context.Context) listwatch.List[*metav1.PartialObjectMetadata] {
				list, _ := source.Metadata(ctx, options)
				return list
			})
		}
	}
	return ask(ctx, r, func(T) {}, func(ctx context.Context) listwatch.List[T] { return r.probes.List(ctx, options) })
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
		r.recovered(false)
	}
	r.sweep = sweep{}
	return nil
}
