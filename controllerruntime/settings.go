package controllerruntime

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// settings are cache.Options as each kind has them.
type settings struct {
	defaults   cache.Config
	namespaces map[string]cache.Config
	byKind     map[schema.GroupVersionKind]cache.ByObject
	// The options of this module; 0 for no bound.
	failFast, oneWatch     bool
	packed                 packed
	warnAbove, refuseAbove int
}

// validate checks the options of this module.
func (s settings) validate() error {
	switch {
	case s.warnAbove < 0:
		return fmt.Errorf("WarnAbove(%d): give a positive number of objects", s.warnAbove)
	case s.refuseAbove < 0:
		return fmt.Errorf("RefuseAbove(%d): give a positive number of objects, or set ReaderFailOnMissingInformer in cache.Options", s.refuseAbove)
	}
	return nil
}

func newSettings(options cache.Options, sources sources) (settings, error) {
	s := settings{
		defaults: cache.Config{
			LabelSelector: options.DefaultLabelSelector, FieldSelector: options.DefaultFieldSelector,
			Transform: options.DefaultTransform, UnsafeDisableDeepCopy: options.DefaultUnsafeDisableDeepCopy,
			EnableWatchBookmarks: options.DefaultEnableWatchBookmarks, SyncPeriod: options.SyncPeriod,
		},
		namespaces: maps.Clone(options.DefaultNamespaces),
		byKind:     map[schema.GroupVersionKind]cache.ByObject{},
	}
	for obj, byObject := range options.ByObject {
		gvk, err := apiutil.GVKForObject(obj, sources.scheme)
		if err != nil {
			return s, fmt.Errorf("ByObject: %T: %w", obj, err)
		}
		mapping, err := sources.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return s, fmt.Errorf("ByObject: %s: %w", gvk, err)
		}
		if isRoot(mapping) && byObject.Namespaces != nil {
			return s, fmt.Errorf("ByObject: %s has no namespaces, but its Namespaces are set: remove them", gvk)
		}
		s.byKind[gvk] = byObject
	}
	return s, nil
}

// of returns the configuration of each namespace of a kind; the empty namespace stands for all
// others. A setting that a namespace lacks comes from its kind, then from DefaultNamespaces, then
// from the defaults.
func (s settings) of(gvk schema.GroupVersionKind, namespaced bool) map[string]cache.Config {
	byObject := s.byKind[gvk]
	ofKind := cache.Config{
		LabelSelector: byObject.Label, FieldSelector: byObject.Field, Transform: byObject.Transform,
		UnsafeDisableDeepCopy: byObject.UnsafeDisableDeepCopy, EnableWatchBookmarks: byObject.EnableWatchBookmarks,
		SyncPeriod: byObject.SyncPeriod,
	}
	namespaces := byObject.Namespaces
	if namespaces == nil {
		namespaces = s.namespaces
	}
	if !namespaced || len(namespaces) == 0 {
		return map[string]cache.Config{metav1.NamespaceAll: first(ofKind, s.defaults)}
	}
	all := map[string]cache.Config{}
	for namespace, config := range namespaces {
		config = first(config, ofKind, s.namespaces[namespace], s.defaults)
		if namespace == metav1.NamespaceAll {
			config.FieldSelector = except(namespaces, config.FieldSelector)
		}
		all[namespace] = config
	}
	return all
}

// first returns the first value that is set, of each field.
func first(configs ...cache.Config) (c cache.Config) {
	for _, next := range configs {
		if c.LabelSelector == nil {
			c.LabelSelector = next.LabelSelector
		}
		if c.FieldSelector == nil {
			c.FieldSelector = next.FieldSelector
		}
		if c.Transform == nil {
			c.Transform = next.Transform
		}
		if c.UnsafeDisableDeepCopy == nil {
			c.UnsafeDisableDeepCopy = next.UnsafeDisableDeepCopy
		}
		if c.EnableWatchBookmarks == nil {
			c.EnableWatchBookmarks = next.EnableWatchBookmarks
		}
		if c.SyncPeriod == nil {
			c.SyncPeriod = next.SyncPeriod
		}
	}
	return c
}

// except narrows a selector to the namespaces that have no configuration of their own.
func except(namespaces map[string]cache.Config, selector fields.Selector) fields.Selector {
	var terms []fields.Selector
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if namespace != metav1.NamespaceAll {
			terms = append(terms, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	if selector != nil {
		terms = append(terms, selector)
	}
	return fields.AndSelectors(terms...)
}

// defaultSyncPeriod is controller-runtime's.
const defaultSyncPeriod = 10 * time.Hour

// syncPeriod is the shortest one of the namespaces, and up to a tenth more or less, so that not all
// kinds are told again at once.
func syncPeriod(configs map[string]cache.Config) time.Duration {
	shortest := time.Duration(-1)
	for _, config := range configs {
		period := defaultSyncPeriod
		if config.SyncPeriod != nil {
			period = *config.SyncPeriod
		}
		if shortest < 0 || period > 0 && period < shortest || shortest == 0 {
			shortest = period
		}
	}
	return time.Duration(float64(shortest) * (0.9 + rand.Float64()/5))
}
