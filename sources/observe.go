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
	// Changed is called when a source has set a state, before the reader of Updates is told, also
	// of states that a late reader misses. changes yields each pod that the source changed. There
	// is one call at a time. The source waits for the call.
	Changed func(changes iter.Seq[PodChange])
	// Start, if not nil, is called by Run before any source runs. Its error ends Run. Run calls
	// work on a goroutine of its own, and waits for its end. ctx has the logger of the sources, and
	// ends with Run.
	Start func(ctx context.Context) (work func(), err error)
	// Status, if not nil, is the observer's entry in [Sources.Status]. No readiness waits for it.
	Status func() Status
}

// PodChange is what became of one pod of the node, as [Sources.Merged] joins it. New is zero if it
// was the last source that has dropped the pod, and Old has its last state then. A pod made anew
// under its name is two changes: the end of the old one, and then the new one.
type PodChange struct {
	Key      string // namespace/name
	Old, New MergedPod
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
	all := *s.observers.Load()
	if len(all) == 0 {
		f.newest.Store(&now)
		return
	}
	s.telling.Lock() // and only then the state is the newest: what was told is that of one order
	defer s.telling.Unlock()
	before := f.newest.Swap(&now)
	for _, o := range all {
		o.Changed(func(yield func(PodChange) bool) {
			feeds, last := s.list(), ""
			for c := range store.Diff(*before, now) {
				if c.Key == last { // the second half of a pod made anew
					continue
				}
				if last = c.Key; !yieldChange(feeds, f, *before, c.Key, yield) {
					return
				}
			}
		})
	}
}

// yieldChange yields what became of the pods of one key when a feed left a state.
func yieldChange(feeds []*feed, f *feed, before Pods, key string, yield func(PodChange) bool) bool {
	was := merged(feeds, key, func(of *feed) Pods {
		if of == f {
			return before
		}
		return of.state()
	})
	now := merged(feeds, key, (*feed).state)
	if was.Pod == nil || now.Pod == nil || was.Is(now) {
		return yield(PodChange{key, was, now})
	}
	return yield(PodChange{Key: key, Old: was}) && yield(PodChange{Key: key, New: now})
}
