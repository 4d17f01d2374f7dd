package content_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/content"
)

// schema contains itself in each way that a type can.
type schema struct {
	Title    string
	Not      *schema
	AllOf    []schema
	Named    map[string]schema
	Keyed    map[int]*schema
	Raw      []byte
	Any      any
	Object   runtime.Object
	Limits   [2]float32
	Odd      complex128
	Do       func()
	Done     chan int
	internal int8
}

func (s *schema) DeepCopyObject() runtime.Object      { return s }
func (s *schema) GetObjectKind() apischema.ObjectKind { return apischema.EmptyObjectKind }

// fill sets a value to random content of little variety, so that equal values are frequent.
func fill(random *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(random.Int64N(2))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(random.Uint64N(2))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, 1, math.NaN()}[random.IntN(30)/14])
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[random.IntN(3)])
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && random.IntN(4) == 0 {
				fill(random, v.Field(i), depth)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(random, v.Index(i), depth)
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if depth > 0 {
			fillShared(random, v, depth-1)
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			values := []any{nil, "a", true, int64(1), 1.5, math.NaN(), int32(1), []any{}, []any(nil), []any{"a", nil},
				map[string]any{}, map[string]any{"a": map[string]any{"b": []any{int64(1)}}}, [1]string{"a"}, &schema{Title: "a"}}
			if value := values[random.IntN(len(values))]; value != nil {
				v.Set(reflect.ValueOf(value))
			}
		}
	}
}

func fillShared(random *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(random, key, depth)
			fill(random, value, depth)
			v.SetMapIndex(key, value)
		}
	}
}

// TestEqualIsReflects: the result is reflect's, for objects of little variety, their copies and
// copies with a difference.
func TestEqualIsReflects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, example := range []any{corev1.Pod{}, schema{}, unstructured.Unstructured{}, corev1.Node{}} {
		equal := 0
		for i := range uint64(3000) {
			// Each object of a seed is the same one, and shares no memory with the other.
			make := func(seed uint64) any {
				v := reflect.New(reflect.TypeOf(example))
				random := rand.New(rand.NewPCG(seed, 7))
				for range 3 {
					fill(random, v.Elem(), 5)
				}
				return v.Interface()
			}
			a, b := make(seed+i), make(seed+i)
			for range i % 3 {
				fill(rand.New(rand.NewPCG(seed^i, 8)), reflect.ValueOf(b).Elem(), 3)
			}
			want := reflect.DeepEqual(a, b)
			require.Equal(t, want, content.Equal(a, b), "%T %d:\n%v\n%v", a, i, a, b)
			require.Equal(t, reflect.DeepEqual(a, a), content.Equal(a, a))
			if want {
				equal++
			}
		}
		require.Greater(t, equal, 500, "%T", example)
		require.Less(t, equal, 2900, "%T", example)
	}
}

// TestEqualOfEdges has the cases that random objects do not have.
func TestEqualOfEdges(t *testing.T) {
	quantity := resource.MustParse("100m")
	used := resource.MustParse("100m")
	_ = used.String() // which is kept
	at := time.Now()
	utc, elsewhere := metav1.NewTime(at.UTC()), metav1.NewTime(at.In(time.FixedZone("there", 3600)))
	cycle, other := &schema{}, &schema{}
	cycle.Not, other.Not = cycle, other
	deep := func(title string) *schema {
		s := &schema{Title: title}
		for range 1000 {
			s = &schema{Not: s, AllOf: []schema{}}
		}
		return s
	}
	do, channel := func() {}, make(chan int)
	for i, pair := range [][2]any{
		{nil, nil}, {nil, &schema{}}, {(*schema)(nil), (*schema)(nil)}, {(*schema)(nil), &schema{}}, {&schema{}, &corev1.Pod{}},
		{&quantity, &used}, {&quantity, &quantity}, {&utc, &elsewhere}, {&utc, &utc}, {cycle, other}, {deep("a"), deep("a")}, {deep("a"), deep("b")},
		{&schema{internal: 1}, &schema{internal: 2}}, {&schema{Do: do}, &schema{Do: do}}, {&schema{Done: channel}, &schema{Done: channel}},
		{&schema{Done: channel}, &schema{Done: make(chan int)}}, {&schema{Object: cycle}, &schema{Object: other}}, {&schema{Object: &schema{Title: "a"}}, &schema{Object: &corev1.Pod{}}},
		{&schema{Raw: []byte{}}, &schema{}}, {&schema{Raw: []byte("a")}, &schema{Raw: []byte("b")}}, {&schema{Odd: 1i}, &schema{Odd: 1i}},
		{map[string]any{"a": nil}, map[string]any{"b": nil}}, {"a", "a"}, {1, int64(1)}, {[]string{"a"}, []string{"a"}},
	} {
		require.Equal(t, reflect.DeepEqual(pair[0], pair[1]), content.Equal(pair[0], pair[1]), fmt.Sprint(i))
		require.Equal(t, reflect.DeepEqual(pair[1], pair[0]), content.Equal(pair[1], pair[0]), fmt.Sprint(i))
	}
}

// BenchmarkEqual compares a pod of the usual parts with its copy.
func BenchmarkEqual(b *testing.B) {
	pod := &corev1.Pod{}
	random := rand.New(rand.NewPCG(1, 1))
	for range 12 {
		fill(random, reflect.ValueOf(pod).Elem(), 8)
	}
	pod.Spec.Overhead = nil
	pod.Labels = map[string]string{"app": "web", "team": "shop", "version": "1"}
	copied := pod.DeepCopy()
	for name, equal := range map[string]func(a, b any) bool{"tributary": content.Equal, "reflect": reflect.DeepEqual} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				equal(pod, copied)
			}
		})
	}
	_ = copied
}
