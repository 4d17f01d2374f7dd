package zstd_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
	"github.com/tributary-go/tributary/store/packed/zstd"
)

var words = strings.Fields("timeout interval retries endpoint listen address path level format debug warn error production staging cluster region zone " +
	"bucket database username namespace labels component version image repository tag resources limits requests cpu memory volumes value rules alert for severity")

// text is settings of a name's own.
func text(i, state int) string {
	random := rand.New(rand.NewPCG(uint64(i), uint64(state)))
	var b strings.Builder
	for b.Len() < 12_000 {
		fmt.Fprintf(&b, "%s%s: %s-%s-%d\n", strings.Repeat("  ", random.IntN(4)), words[random.IntN(len(words))], words[random.IntN(len(words))],
			words[random.IntN(len(words))], random.IntN(10_000))
	}
	return b.String()
}

func config(i, state int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("config-%04d", i), UID: "uid", ResourceVersion: fmt.Sprint(state + 1)},
		Data: map[string]string{"settings.yaml": text(i, state)}}
}

func filled(t testing.TB, s store.Store[*corev1.ConfigMap], count int) {
	t.Helper()
	require.NoError(t, s.Replace(func(yield func(*corev1.ConfigMap, error) bool) {
		for i := range count {
			if !yield(config(i, 0), nil) {
				return
			}
		}
	}, func() string { return "1" }))
}

// TestTextsComeBack: after a list and many changes, beside readers.
func TestTextsComeBack(t *testing.T) {
	packed.SetHot(0)
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	const count = 200
	s := zstd.New[corev1.ConfigMap]()
	filled(t, s, count)
	before := s.Snapshot()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range count {
				obj, ok := before.Get("team/" + config(i, 0).Name)
				if !ok || obj.Data["settings.yaml"] != text(i, 0) {
					t.Errorf("%d is another text", i)
				}
			}
		})
	}
	for i := range count {
		require.NoError(t, s.Update(config(i, 1+i)))
	}
	readers.Wait()
	for i := range count {
		obj, ok := s.Get("team/" + config(i, 0).Name)
		require.True(t, ok)
		require.Equal(t, config(i, 1+i), obj)
	}
}

// TestWholeObjectsAreLearned: what large objects have in common in any part of them is coded by the
// dictionary, and small objects lose nothing by it. A huge one leaves room for the others.
func TestWholeObjectsAreLearned(t *testing.T) {
	shared := text(1, 0)
	large := func(i int) []byte { return fmt.Appendf(nil, "name-%d %s value %d", i, shared, i*i) }
	small := func(i int) []byte { return []byte(text(i, 1)[:400]) }
	coded := func(samples [][]byte, document []byte) int {
		pack, unpack := zstd.Codec(samples)
		code := pack(nil, document)
		again, err := unpack(nil, code)
		require.NoError(t, err)
		require.Equal(t, document, again)
		return len(code)
	}
	var larges, smalls [][]byte
	for i := range 32 {
		larges, smalls = append(larges, large(i)), append(smalls, small(i))
	}
	require.Less(t, coded(larges, large(100)), 100, "of 12,000")
	require.Less(t, coded(smalls, small(100)), coded(nil, small(100)))
	huge := append(larges, bytes.Repeat([]byte(text(2, 0)), 100))
	require.Less(t, coded(huge, large(100)), 100, "of 12,000")
}

// heap is the memory of what make returns, in bytes.
func heap(make func() any) float64 {
	collect := func() float64 {
		for range 3 { // pools hold on for two
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := collect()
	held := make()
	after := collect()
	runtime.KeepAlive(held)
	return after - before
}

// TestARestingStoreHasNoCoder: what is left is the codes and a dictionary.
func TestARestingStoreHasNoCoder(t *testing.T) {
	const count = 300
	sum := 0.
	for i := range count {
		sum += float64(len(text(i, 0)))
	}
	coded := heap(func() any { s := zstd.New[corev1.ConfigMap](); filled(t, s, count); return s })
	letters := heap(func() any { s := packed.New[corev1.ConfigMap](); filled(t, s, count); return s })
	require.Less(t, coded, 0.45*sum)
	require.Less(t, coded, 0.75*letters)
}

// TestSecretsAreNotCoded: a codec is told of no Secret, by the Go type or by the kind.
func TestSecretsAreNotCoded(t *testing.T) {
	secret := func(i int) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: "uid", ResourceVersion: "1"}, Data: map[string][]byte{"settings": []byte(text(i, 0))}}
	}
	coded := heap(func() any {
		s := zstd.New[corev1.Secret]()
		for i := range 100 {
			require.NoError(t, s.Add(secret(i)))
		}
		return s
	})
	require.Greater(t, coded, 100*12_000., "each is in its own bytes")
}

func BenchmarkPack(b *testing.B) {
	pack, unpack := zstd.Codec([][]byte{[]byte(text(1, 0)), []byte(text(2, 0)), []byte(text(3, 0)), []byte(text(4, 0))})
	document := []byte(text(5, 0))
	code := pack(nil, document)
	b.Run("pack", func(b *testing.B) {
		var dst []byte
		for b.Loop() {
			dst = pack(dst[:0], document)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		var dst []byte
		for b.Loop() {
			dst, _ = unpack(dst[:0], code)
		}
	})
}
