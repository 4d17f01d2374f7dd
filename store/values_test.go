package store

import (
	"reflect"
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyValuesAreLinear: an object of many index values costs a few comparisons per value,
// however many they are, and readers wait for none of them.
func TestManyValuesAreLinear(t *testing.T) {
	const n = 20_000
	counted := newCountedType(t)
	half := func(from int) []any { // and each twice
		values := make([]any, 0, 2*n)
		for i := range 2 * n {
			values = append(values, counted.value(strconv.Itoa(from+i%n)))
		}
		return values
	}
	values := map[string][]any{"1": half(0), "2": half(n / 2), "3": half(n / 2)}
	index := NewIndex("many", func(p *corev1.Pod) []any { return values[p.ResourceVersion] })
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: version}}
	}
	indexer := NewIndexer(index)
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "v", ResourceVersion: "1"}}
	require.NoError(t, indexer.Add(other), "so that the index has nodes")
	for _, step := range []struct {
		name  string
		write func() error
		under int // the number of values that the index has then
	}{
		{"add", func() error { return indexer.Add(pod("1")) }, n},
		{"update to other values", func() error { return indexer.Update(pod("2")) }, n + n/2},
		{"update to the same values", func() error { return indexer.Update(pod("3")) }, n + n/2},
		{"delete", func() error { return indexer.Delete(pod("3")) }, n},
		{"list", func() error { return indexer.Replace(Items(pod("1"), other), At("4")) }, n},
		{"list again", func() error { return indexer.Replace(Items(pod("2")), At("5")) }, n},
		{"list into an empty indexer", func() error { return NewIndexer(index).Replace(Items(pod("2")), At("5")) }, n},
	} {
		locked := 0
		*counted.compared = 0
		counted.onCompare = func() {
			if indexer.of.editing.TryLock() {
				indexer.of.editing.Unlock()
			} else {
				locked++
			}
		}
		require.NoError(t, step.write(), step.name)
		t.Logf("%s: %d comparisons for %d values, %d under the readers' lock", step.name, *counted.compared, n, locked)
		require.Positive(t, *counted.compared, step.name)
		require.Less(t, *counted.compared, 30*n, step.name)
		require.LessOrEqual(t, locked, lockedValues, step.name)
		counted.onCompare = func() {}
		got := 0
		for range index.Values(indexer.Snapshot()) {
			got++
		}
		require.Equal(t, step.under, got, step.name)
	}
}

// countedType is a type whose comparisons are counted: a struct made at run time, which has its
// comparison in a field of its type descriptor.
type countedType struct {
	reflect.Type
	compared  *int
	onCompare func()
}

func newCountedType(t *testing.T) *countedType {
	c := &countedType{compared: new(int), onCompare: func() {}}
	c.Type = reflect.StructOf([]reflect.StructField{
		{Name: "Value", Type: reflect.TypeFor[string]()}, {Name: "Counted", Type: reflect.TypeFor[int]()}})
	descriptor := (*[2]unsafe.Pointer)(unsafe.Pointer(&c.Type))[1]
	// abi.Type: two words, four bytes and four times one byte stand before the comparison.
	equal := (*func(a, b unsafe.Pointer) bool)(unsafe.Add(descriptor, 2*unsafe.Sizeof(uintptr(0))+8))
	plain := *equal
	*equal = func(a, b unsafe.Pointer) bool {
		*c.compared++
		c.onCompare()
		return plain(a, b)
	}
	require.Equal(t, c.value("a"), c.value("a"))
	*c.compared = 0
	require.True(t, c.value("a") == c.value("a"))
	require.False(t, c.value("a") == c.value("b"))
	require.Equal(t, 2, *c.compared, "this version of Go keeps the comparison elsewhere")
	return c
}

func (c *countedType) value(s string) any {
	v := reflect.New(c.Type).Elem()
	v.Field(0).SetString(s)
	return v.Interface()
}
