package packed_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// TestNothingIsLearnedFromSecrets: each is kept in its own bytes, whatever form it comes in.
func TestNothingIsLearnedFromSecrets(t *testing.T) {
	secrets, trees, heads := packed.New[corev1.Secret](), packed.New[unstructured.Unstructured](), packed.New[metav1.PartialObjectMetadata]()
	heads.LearnNothing()
	var all []*corev1.Secret
	for i := range 500 {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("secret-", i), UID: "uid", ResourceVersion: fmt.Sprint(i + 1)},
			Data:       map[string][]byte{"password": fmt.Appendf(nil, "%1000d", i)},
		}
		all = append(all, secret)
		require.NoError(t, trees.Add(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": secret.Name}, "data": map[string]any{"password": "Zm9v"},
		}}))
		require.NoError(t, heads.Add(&metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}))
	}
	require.NoError(t, secrets.Replace(store.Items(all...), store.At("501")))
	require.NoError(t, secrets.Update(all[7]))
	require.NoError(t, secrets.Delete(all[8]))
	require.False(t, secrets.Remembers())
	require.False(t, trees.Remembers())
	require.False(t, heads.Remembers())
	got, ok := secrets.Get("ns/secret-9")
	require.True(t, ok)
	require.Equal(t, all[9], got)

	pods := packed.New[corev1.Pod]()
	require.NoError(t, pods.Replace(store.Items(somePod(1, 1), somePod(2, 2)), store.At("3")))
	require.True(t, pods.Remembers())
}

// TestLargeBytesWasteNoPage: objects that are kept in their own bytes take little more than those,
// though Go allocates large ones in whole pages. Each length comes back.
func TestLargeBytesWasteNoPage(t *testing.T) {
	packed.SetHot(0)
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	secret := func(i, bytes int) *corev1.Secret {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("secret-", i), UID: "a UID of a Secret", ResourceVersion: "1",
			Labels: map[string]string{"app": fmt.Sprint(i)}}, Data: map[string][]byte{"key": make([]byte, bytes)}}
		for at := range s.Data["key"] {
			s.Data["key"][at] = byte(random.Uint32())
		}
		return s
	}
	heap := func() int {
		for range 3 { // pools keep what they have for two collections
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const count, large = 200, 32 << 10
	before := heap()
	secrets := packed.New[corev1.Secret]()
	for i := range count {
		require.NoError(t, secrets.Add(secret(i, large)))
	}
	require.Less(t, (heap()-before)/count, large*105/100)
	for i, bytes := range []int{0, 1000, large - 200, large - 100, large, large + 1000, large + 7000, large + 8000, 100_000, 1 << 20} {
		want := secret(i, bytes)
		require.NoError(t, secrets.Update(want))
		got, ok := secrets.Get("ns/" + want.Name)
		require.True(t, ok)
		require.Equal(t, want, got)
		entry, _ := secrets.Entries().Get("ns/" + want.Name)
		require.Equal(t, want.Labels, entry.(store.Object).GetLabels())
		require.False(t, packed.ReaderHas([]byte(want.UID)), "a buffer keeps it")
	}
	require.False(t, secrets.Remembers())
}

// TestASecretAmongOthers: in a collection of many kinds, the others are packed.
func TestASecretAmongOthers(t *testing.T) {
	trees := packed.New[unstructured.Unstructured]()
	object := func(kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "text": fmt.Sprintf("%500d", 1)}}
	}
	require.NoError(t, trees.Add(object("Secret", "a")))
	require.False(t, trees.Remembers())
	require.NoError(t, trees.Add(object("ConfigMap", "b")))
	require.True(t, trees.Remembers())
	for _, want := range []*unstructured.Unstructured{object("Secret", "a"), object("ConfigMap", "b")} {
		got, ok := trees.Get(want.GetName())
		require.True(t, ok)
		require.Equal(t, want, got)
	}
}

// TestTheMemoryOfBytesIsGivenBack: another object gets it, but never that of a Secret.
func TestTheMemoryOfBytesIsGivenBack(t *testing.T) {
	encoded := func(fleeting bool, kind string) *store.Encoded {
		data, err := somePod(1, 1).Marshal()
		require.NoError(t, err)
		e := &store.Encoded{Fleeting: fleeting}
		e.Namespace, e.Name, e.UID, e.ResourceVersion, e.Kind = "ns", "a", "uid", "1", kind
		e.Keep(data)
		return e
	}
	pod, fleeting, secret, trace := encoded(false, ""), encoded(true, ""), encoded(false, "Secret"), encoded(false, "")
	require.NoError(t, packed.New[corev1.Pod]().Encoded().Add(pod))
	require.Nil(t, pod.Data)

	require.NoError(t, packed.New[corev1.Pod]().Encoded().Add(fleeting))
	require.NoError(t, packed.New[corev1.Pod]().Encoded().Add(secret))
	leaveNone := packed.New[corev1.Pod]()
	leaveNone.LearnNothing()
	require.NoError(t, leaveNone.Encoded().Replace(store.Items(trace), store.At("1")))
	fleeting.Release() // nothing is to be given back
	for _, e := range []*store.Encoded{fleeting, secret, trace} {
		require.NotNil(t, e.Data)
	}

	many := packed.New[corev1.Pod]() // the first ones wait until their siblings are known
	var all []*store.Encoded
	for i := range 100 {
		e := encoded(false, "")
		e.Name = fmt.Sprint("pod-", i)
		all = append(all, e)
	}
	require.NoError(t, many.Encoded().Replace(store.Items(all...), store.At("1")))
	for _, e := range all {
		require.Nil(t, e.Data)
		got, ok := many.Get("ns/" + e.Name)
		require.True(t, ok)
		require.Equal(t, somePod(1, 1), got)
	}
}
