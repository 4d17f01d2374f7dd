package clientgo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
	"github.com/tributary-go/tributary/store"
)

// The types here add the methods whose types only some releases of client-go have: D is
// cache.DoneChecker, from 0.36 on, and S sharding.Selector, from 0.38 on. See package across.

// asClientGo is the informer with all methods of client-go's interface.
func (s *shared[T]) asClientGo() cache.SharedIndexInformer { return completed(s, across.Informer{}) }

func completed[T store.Object, D, S any](s *shared[T], _ interface {
	HasSyncedChecker() D
	SetShardSelector(S) error
}) *complete[T, D, S] {
	return &complete[T, D, S]{s}
}

type complete[T store.Object, D, S any] struct{ *shared[T] }

func (c *complete[T, D, S]) HasSyncedChecker() D {
	return any(checker{"informer", c.informer.Synced()}).(D)
}

// SetShardSelector keeps the objects of one shard, and may be called until Run. The server sends
// all, and this informer leaves the others out. An informer that was given its source cannot, and
// panics: factories drop an error, and then each replica would have everything.
func (c *complete[T, D, S]) SetShardSelector(selector S) error { return c.SetShard(selector) }

func completedRegistration[T store.Object, D any](
	r *registration[T], _ interface{ HasSyncedChecker() D },
) *completeRegistration[T, D] {
	return &completeRegistration[T, D]{r}
}

type completeRegistration[T store.Object, D any] struct{ *registration[T] }

func (c *completeRegistration[T, D]) HasSyncedChecker() D {
	return any(checker{c.handler.Name(), c.handler.Synced()}).(D)
}

func completedController[D any](c *controller, _ interface{ HasSyncedChecker() D }) *completeController[D] {
	return &completeController[D]{c}
}

type completeController[D any] struct{ *controller }

func (c *completeController[D]) HasSyncedChecker() D {
	return c.config.Queue.(interface{ HasSyncedChecker() D }).HasSyncedChecker()
}
