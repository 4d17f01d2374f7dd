package controllerruntime

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigsOf returns the configuration of each namespace of a namespaced kind.
func ConfigsOf(c *Cache, gvk schema.GroupVersionKind) map[string]cache.Config {
	return c.settings.of(gvk, true)
}

// MaxPending is the bound of [Pending].
const MaxPending = maxPending

// Pending returns how many writes a client of [NewClient] keeps.
func Pending(c client.Client) (count int) {
	own := c.(*ownWrites)
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, w := range own.kinds {
		w.mu.Lock()
		count += len(w.pending)
		w.mu.Unlock()
	}
	return count
}
