package sources

import (
	"context"
	"iter"
	"slices"

	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/store"
)

// Observer follows the pods of the node beside the reader of Updates: see [Sources.Observe].
type Observer struct {
	// Changed is called when a source has set a state, before the reader of Updates is told. pods
	// yields each pod that the source changed, by namespace/name, as [Sources.Merged] joins it now.
	// If no source has a pod of the name any more, its MergedPod is zero. There is one call at a
	// time. The source waits for the call.
	Changed func(pods iter.Seq2[string, MergedPod])
	// Start, if not nil, is called by Run before any source runs. Its error ends Run. Run calls
	// work on a goroutine of its own, and waits for its end. ctx has the logger of the sources, and
	// ends with Run.
	Start func(ctx context.Context) (work func(), err error)
	// Status, if not nil, is the observer's entry in [Sources.Status]. No readiness waits for it.
	Status func() Status
}

// Observe adds an observer. Call it before Run: Observe panics later, since the observer would have
// missed states.
func (s *Sources) Observe(o Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		panic("sources: Observe was called after Run")
	}
	all := append(slices.Clone(*s.observers.Load()), o)
	s.observers.Store(&all)
}

// startObservers begins the work of the observers, all of it or none.
func (s *Sources) startObservers(ctx context.Context) error {
	ctx = klog.NewContext(ctx, s.logger(ctx))
	var all []func()
	for _, o := range *s.observers.Load() {
		if o.Start == nil {
			continue
		}
		work, err := o.Start(ctx)
		if err != nil {
			return err
		}
		all = append(all, work)
	}
	for _, work := range all {
		s.running.Go(work)
	}
	return nil
}

// changed makes now the newest state of a source, and tells the observers.
func (s *Sources) changed(f *feed, now Pods) {
	before := f.newest.Swap(&now)
	all := *s.observers.Load()
	if len(all) == 0 {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	for _, o := range all {
		o.Changed(func(yield func(string, MergedPod) bool) {
			feeds := s.list()
			for c := range store.Diff(*before, now) {
				if !yield(c.Key, merged(feeds, c.Key)) {
					return
				}
			}
		})
	}
}
