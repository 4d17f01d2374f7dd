// Package storetest is the conformance suite of [store.Store]. It checks on any implementation the
// promises on which a reflector relies.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Rig {
//			s := mystore.New()
//			return storetest.Rig{Store: s, Objects: s.List}
//		})
//	}
package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// Rig is one empty store under test.
type Rig struct {
	Store store.Store[*corev1.Pod]
	// Objects returns the objects that the store holds now, in any order.
	Objects func() []*corev1.Pod
	// ResourceVersion returns the version that the store believes to have; nil where it keeps none.
	ResourceVersion func() string
}

// Run runs the suite; each subtest gets a new rig.
func Run(t *testing.T, newRig func(t *testing.T) Rig) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Rig){
		"writes":                  testWrites,
		"replay is harmless":      testReplay,
		"content decides":         testContent,
		"replace is whole":        testReplace,
		"replace fails whole":     testReplaceError,
		"replace to nothing":      testReplaceEmpty,
		"nameless is refused":     testNameless,
		"version never goes back": testVersion,
		"model":                   testModel,
	} {
		t.Run(name, func(t *testing.T) { test(t, newRig(t)) })
	}
}

// testContent: a server can change an object's content under an equal version.
func testContent(t *testing.T, r Rig) {
	changed := func(label string) *corev1.Pod {
		pod := Pod("a", 1)
		pod.Labels = map[string]string{"l": label}
		return pod
	}
	require.NoError(t, r.Store.Replace(store.Items(changed("one"), Pod("b", 2)), store.At("5")))
	require.NoError(t, r.Store.Replace(store.Items(changed("two"), Pod("b", 2)), store.At("6")))
	require.ElementsMatch(t, []*corev1.Pod{changed("two"), Pod("b", 2)}, r.Objects(), "of a list")
	require.NoError(t, r.Store.Update(changed("three")))
	require.ElementsMatch(t, []*corev1.Pod{changed("three"), Pod("b", 2)}, r.Objects(), "of an event")
}

// Pod makes a small pod: namespace "ns", with a UID made of its name and the resource version as
// given.
func Pod(name string, resourceVersion int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(resourceVersion),
	}}
}

func (r Rig) require(t *testing.T, want ...string) {
	t.Helper()
	got := []string{}
	for _, pod := range r.Objects() {
		got = append(got, pod.Name+"@"+pod.ResourceVersion)
	}
	slices.Sort(got)
	require.Equal(t, append([]string{}, want...), got)
}

func testWrites(t *testing.T, r Rig) {
	r.require(t)
	require.NoError(t, r.Store.Add(Pod("a", 1)))
	require.NoError(t, r.Store.Add(Pod("b", 2)))
	require.NoError(t, r.Store.Update(Pod("a", 3)))
	r.require(t, "a@3", "b@2")
	require.NoError(t, r.Store.Delete(Pod("b", 4)))
	r.require(t, "a@3")
}

func testReplay(t *testing.T, r Rig) {
	require.NoError(t, r.Store.Update(Pod("a", 1)), "an update of what is not there adds it")
	require.NoError(t, r.Store.Add(Pod("a", 2)), "an addition of what is there updates it")
	require.NoError(t, r.Store.Delete(Pod("never", 3)), "a deletion of what is not there is nothing")
	r.require(t, "a@2")
}

func testReplace(t *testing.T, r Rig) {
	require.NoError(t, r.Store.Add(Pod("gone", 1)))
	require.NoError(t, r.Store.Add(Pod("kept", 2)))
	require.NoError(t, r.Store.Replace(store.Items(Pod("kept", 2), Pod("new", 5), Pod("twice", 6), Pod("twice", 7)), store.At("9")))
	r.require(t, "kept@2", "new@5", "twice@7")
}

func testReplaceError(t *testing.T, r Rig) {
	require.NoError(t, r.Store.Add(Pod("a", 1)))
	broken := errors.New("the stream broke")
	items := func(yield func(*corev1.Pod, error) bool) {
		_ = yield(Pod("b", 2), nil) && yield(nil, broken)
	}
	version := func() string { t.Error("asked for the version of a list that failed"); return "" }
	require.ErrorIs(t, r.Store.Replace(items, version), broken)
	r.require(t, "a@1")
}

func testReplaceEmpty(t *testing.T, r Rig) {
	require.NoError(t, r.Store.Add(Pod("a", 1)))
	require.NoError(t, r.Store.Replace(store.Items[*corev1.Pod](), store.At("2")))
	r.require(t)
}

func testNameless(t *testing.T, r Rig) {
	require.NoError(t, r.Store.Add(Pod("a", 1)))
	require.Error(t, r.Store.Add(&corev1.Pod{}))
	require.Error(t, r.Store.Update(nil))
	require.Error(t, r.Store.Delete(nil))
	require.Error(t, r.Store.Replace(store.Items(Pod("b", 2), &corev1.Pod{}), store.At("3")))
	r.require(t, "a@1")
}

func testVersion(t *testing.T, r Rig) {
	if r.ResourceVersion == nil {
		t.Skip("this store keeps no resource version")
	}
	bookmark := func(string) error { return nil }
	if b, ok := r.Store.(store.Bookmarker); ok {
		bookmark = b.Bookmark
	}
	require.NoError(t, r.Store.Replace(store.Items(Pod("a", 3)), store.At("9")))
	require.Equal(t, "9", r.ResourceVersion())
	require.NoError(t, r.Store.Add(Pod("b", 10)))
	require.Equal(t, "10", r.ResourceVersion())
	require.NoError(t, bookmark("8"))
	require.Equal(t, "10", r.ResourceVersion(), "an old bookmark")
	require.NoError(t, r.Store.Delete(Pod("b", 11)))
	require.Equal(t, "11", r.ResourceVersion(), "a deletion has a version of its own")
	require.NoError(t, r.Store.Replace(store.Items(Pod("a", 3)), store.At("7")))
	require.Equal(t, "7", r.ResourceVersion(), "a restored server goes back, and a list is the truth")
}

// testModel makes random changes and compares with a plain map after each.
func testModel(t *testing.T, r Rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	model := map[string]*corev1.Pod{}
	for version := 1; version <= 500; version++ {
		pod := Pod(fmt.Sprintf("pod-%d", random.IntN(20)), version)
		switch random.IntN(8) {
		case 0, 1, 2:
			require.NoError(t, r.Store.Add(pod))
			model[pod.Name] = pod
		case 3, 4:
			require.NoError(t, r.Store.Update(pod))
			model[pod.Name] = pod
		case 5, 6:
			require.NoError(t, r.Store.Delete(pod))
			delete(model, pod.Name)
		default:
			model = randomList(random, model, version)
			items := store.Items(slices.Collect(maps.Values(model))...)
			require.NoError(t, r.Store.Replace(items, store.At(strconv.Itoa(version))))
		}
		want := []string{}
		for _, p := range model {
			want = append(want, p.Name+"@"+p.ResourceVersion)
		}
		slices.Sort(want)
		r.require(t, want...)
	}
}

// randomList keeps most objects as they are, drops and renews a few.
func randomList(random *rand.Rand, model map[string]*corev1.Pod, version int) map[string]*corev1.Pod {
	list := map[string]*corev1.Pod{}
	for _, name := range slices.Sorted(maps.Keys(model)) {
		switch random.IntN(6) {
		case 0:
		case 1:
			list[name] = Pod(name, version)
		default:
			list[name] = model[name].DeepCopy() // a list decodes unchanged objects anew
		}
	}
	return list
}
