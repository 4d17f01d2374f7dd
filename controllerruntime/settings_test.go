package controllerruntime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestNamespaces: what a namespace does not set comes from its kind, then from DefaultNamespaces,
// then from the defaults, as controller-runtime documents it. The requests tell.
func TestNamespaces(t *testing.T) {
	app := func(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": name}) }
	type config = map[string]cache.Config
	everything := labels.Everything()
	for name, row := range map[string]struct {
		options cache.Options
		want    map[string]string // the selectors of the watch of each namespace
	}{
		"nothing set": {cache.Options{}, map[string]string{"": "|"}},
		"defaults": {
			cache.Options{DefaultLabelSelector: app("x"), DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "p")},
			map[string]string{"": "app=x|metadata.name=p"},
		},
		"a namespace by selector": {
			cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", "a")},
			map[string]string{"a": "|metadata.namespace=a"},
		},
		"default namespaces": {
			cache.Options{DefaultLabelSelector: app("x"), DefaultNamespaces: config{"a": {}, "b": {LabelSelector: app("b")}, "c": {LabelSelector: everything}}},
			map[string]string{"a": "app=x|", "b": "app=b|", "c": "|"},
		},
		"all other namespaces": {
			cache.Options{DefaultNamespaces: config{"a": {}, "b": {}, cache.AllNamespaces: {LabelSelector: app("x")}}},
			map[string]string{"a": "|", "b": "|", "": "app=x|metadata.namespace!=a,metadata.namespace!=b"},
		},
		"the kind before the namespaces' defaults": {
			cache.Options{
				ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: app("pod"), Namespaces: config{"a": {}, "b": {LabelSelector: app("b")}}}},
				DefaultNamespaces: config{
					"a": {LabelSelector: app("default"), FieldSelector: fields.OneTermEqualSelector("metadata.name", "p")}, "other": {},
				},
			},
			map[string]string{"a": "app=pod|metadata.name=p", "b": "app=b|"},
		},
		"the kind in all namespaces": {
			cache.Options{
				ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: config{}}},
				DefaultNamespaces: config{"a": {}},
			},
			map[string]string{"": "|"},
		},
		"of another kind": {
			cache.Options{
				ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Label: app("node")}},
			},
			map[string]string{"": "|"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				c := newCache(t, pods, row.options)
				_, err := c.GetInformer(t.Context(), &corev1.Pod{})
				require.NoError(t, err)
				start(t, c)
				got := map[string]string{}
				for _, r := range pods.Server().AwaitRequests(len(row.want), listwatchtest.Watch) {
					got[r.Namespace] = r.Options.LabelSelector + "|" + r.Options.FieldSelector
				}
				require.Equal(t, row.want, got)
			})
		})
	}
	pods := listwatchtest.New(t, listwatchtest.Pods())
	_, err := controllerruntime.NewCache(pods.Server().Config(), cache.Options{
		Mapper: mapper(), ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: config{"a": {}}}},
	})
	require.ErrorContains(t, err, "Kind=Node has no namespaces")
}

// TestPrecedence: of four levels, the first one that has a setting decides it, each setting for
// itself. If the kind has no namespaces of its own, those of DefaultNamespaces take their place,
// and come before the kind. Those are the rules of controller-runtime's defaults.
func TestPrecedence(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	const inNamespace, ofKind, inDefaultNamespace, everywhere = 0, 1, 2, 3
	yes := [4]*bool{ptr.To(true), ptr.To(true), ptr.To(true), ptr.To(true)}
	periods := [4]*time.Duration{ptr.To(time.Hour), ptr.To(time.Hour), ptr.To(time.Hour), ptr.To(time.Hour)}
	transform := func(level int) toolscache.TransformFunc { return func(any) (any, error) { return level, nil } }
	for name, setting := range map[string]struct {
		set func(config *cache.Config, level int)
		has func(config cache.Config, level int) bool
	}{
		"Transform": {
			func(config *cache.Config, level int) { config.Transform = transform(level) },
			func(config cache.Config, level int) bool {
				got, _ := config.Transform(nil)
				return got == level
			},
		},
		"UnsafeDisableDeepCopy": {
			func(config *cache.Config, level int) { config.UnsafeDisableDeepCopy = yes[level] },
			func(config cache.Config, level int) bool { return config.UnsafeDisableDeepCopy == yes[level] },
		},
		"EnableWatchBookmarks": {
			func(config *cache.Config, level int) { config.EnableWatchBookmarks = yes[level] },
			func(config cache.Config, level int) bool { return config.EnableWatchBookmarks == yes[level] },
		},
		"SyncPeriod": {
			func(config *cache.Config, level int) { config.SyncPeriod = periods[level] },
			func(config cache.Config, level int) bool { return config.SyncPeriod == periods[level] },
		},
	} {
		for levels := range 16 { // a bit for each level that has the setting
			for _, own := range []bool{true, false} { // whether the kind has namespaces of its own
				if !own && levels&1 != 0 {
					continue
				}
				var at [4]cache.Config
				order := []int{inNamespace, ofKind, inDefaultNamespace, everywhere}
				if !own {
					order = []int{inDefaultNamespace, ofKind, everywhere}
				}
				want := -1
				for level := range at {
					if levels&(1<<level) != 0 {
						setting.set(&at[level], level)
					}
				}
				for _, level := range order {
					if want < 0 && levels&(1<<level) != 0 {
						want = level
					}
				}
				kind := cache.ByObject{
					Transform: at[ofKind].Transform, UnsafeDisableDeepCopy: at[ofKind].UnsafeDisableDeepCopy,
					EnableWatchBookmarks: at[ofKind].EnableWatchBookmarks, SyncPeriod: at[ofKind].SyncPeriod,
				}
				if own {
					kind.Namespaces = map[string]cache.Config{"a": at[inNamespace]}
				}
				pods := listwatchtest.New(t, listwatchtest.Pods())
				c := newCache(t, pods, cache.Options{
					ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: kind},
					DefaultNamespaces: map[string]cache.Config{"a": at[inDefaultNamespace]},
					DefaultTransform:  at[everywhere].Transform, DefaultUnsafeDisableDeepCopy: at[everywhere].UnsafeDisableDeepCopy,
					DefaultEnableWatchBookmarks: at[everywhere].EnableWatchBookmarks, SyncPeriod: at[everywhere].SyncPeriod,
				})
				got := controllerruntime.ConfigsOf(c, gvk)
				require.Len(t, got, 1)
				if want < 0 {
					require.Equal(t, cache.Config{}, got["a"], name)
				} else {
					require.True(t, setting.has(got["a"], want), "%s set at levels %04b: level %d does not decide", name, levels, want)
				}
			}
		}
	}
}

// TestSyncPeriod: a handler that asks for no period has the cache's, a tenth more or less.
func TestSyncPeriod(t *testing.T) {
	for _, row := range []struct {
		options cache.Options
		want    time.Duration
	}{
		{cache.Options{}, 10 * time.Hour},
		{cache.Options{SyncPeriod: ptr.To(time.Hour)}, time.Hour},
		{cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {SyncPeriod: ptr.To(time.Minute)}, "b": {}}}, time.Minute},
		{cache.Options{SyncPeriod: ptr.To(time.Duration(0))}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			pods.Create(pod("a", "p", "n"))
			c := newCache(t, pods, row.options)
			informer, err := c.GetInformer(t.Context(), &corev1.Pod{})
			require.NoError(t, err)
			updates := make(chan time.Time, 10)
			_, err = informer.AddEventHandler(onUpdate(func() { updates <- time.Now() }))
			require.NoError(t, err)
			start(t, c)
			began := time.Now()
			if row.want == 0 {
				time.Sleep(100 * time.Hour)
				require.Empty(t, updates)
				return
			}
			require.InDelta(t, row.want, (<-updates).Sub(began), float64(row.want)/10+float64(time.Second))
		})
	}
}

type onUpdate func()

func (onUpdate) OnAdd(any, bool)     {}
func (f onUpdate) OnUpdate(_, _ any) { f() }
func (onUpdate) OnDelete(any)        {}
