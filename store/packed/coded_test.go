package packed_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store/packed"
)

// flates is a codec that counts.
type flates struct{ learned, packed, unpacked atomic.Int64 }

func (f *flates) codec(samples [][]byte) (pack func(dst, document []byte) []byte, unpack func(dst, code []byte) ([]byte, error)) {
	f.learned.Add(1)
	dictionary := slices.Concat(samples...)
	pack = func(dst, document []byte) []byte {
		f.packed.Add(1)
		out := bytes.NewBuffer(dst)
		w, _ := flate.NewWriterDict(out, flate.BestSpeed, dictionary)
		_, _ = w.Write(document)
		_ = w.Close()
		return out.Bytes()
	}
	unpack = func(dst, code []byte) ([]byte, error) {
		f.unpacked.Add(1)
		document, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(code), dictionary))
		return append(dst, document...), err
	}
	return pack, unpack
}

// letter is a ConfigMap of words in an order of its own; a family has all but its last words in
// common.
func letter(i, state int, family bool) *corev1.ConfigMap {
	random := rand.New(rand.NewPCG(uint64(i), uint64(state)))
	if family {
		random = rand.New(rand.NewPCG(1<<40, 1))
	}
	words := strings.Fields("timeout interval retries endpoint listen address format warning production staging cluster region database namespace component")
	var b strings.Builder
	for b.Len() < 8000 {
		fmt.Fprintf(&b, "%s: %d\n", words[random.IntN(len(words))], random.IntN(1_000_000))
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("config-%05d", i), UID: "uid", ResourceVersion: fmt.Sprint(1 + state)},
		Data: map[string]string{"settings": b.String(), "own": fmt.Sprint(i, " ", state)}}
}

func replaceLetters(t *testing.T, s *packed.Store[*corev1.ConfigMap], count int, family bool) {
	t.Helper()
	require.NoError(t, s.Replace(func(yield func(*corev1.ConfigMap, error) bool) {
		for i := range count {
			if !yield(letter(i, 0, family), nil) {
				return
			}
		}
	}, func() string { return "1" }))
}

// TestTextsAreCodedAlone: each of them, in a list and by events, and older states stay readable.
func TestTextsAreCodedAlone(t *testing.T) {
	packed.SetHot(0)
	t.Cleanup(func() { packed.SetHot(packed.DefaultHot) })
	const count = 300
	var f flates
	s := packed.New[corev1.ConfigMap]()
	s.CodeTexts(f.codec)
	replaceLetters(t, s, count, false)
	require.EqualValues(t, 1, f.learned.Load())
	require.Greater(t, f.packed.Load(), int64(count*9/10))
	before := s.Snapshot()
	for i := range count {
		require.NoError(t, s.Update(letter(i, 1, false)))
	}
	for i := range count {
		key := "team/" + letter(i, 0, false).Name
		obj, ok := s.Get(key)
		require.True(t, ok)
		require.Equal(t, letter(i, 1, false), obj)
		obj, ok = before.Get(key)
		require.True(t, ok)
		require.Equal(t, letter(i, 0, false), obj)
	}
	require.Greater(t, f.unpacked.Load(), int64(count*18/10))
}

// TestFamiliesAreDifferencesBesideACodec: no sibling is coded, not even after many texts.
func TestFamiliesAreDifferencesBesideACodec(t *testing.T) {
	var f flates
	s := packed.New[corev1.ConfigMap]()
	s.CodeTexts(f.codec)
	replaceLetters(t, s, 300, true)
	require.EqualValues(t, 1, f.learned.Load())
	require.Zero(t, f.packed.Load())

	s = packed.New[corev1.ConfigMap]()
	s.CodeTexts(f.codec)
	replaceLetters(t, s, 300, false)
	before := f.packed.Load()
	for i := range 300 {
		require.NoError(t, s.Add(letter(1000+i, 0, true)))
	}
	require.Less(t, f.packed.Load()-before, int64(64), "the family is found soon")
}

// TestACodecSeesNoSecret: nor the objects of a store that learns nothing.
func TestACodecSeesNoSecret(t *testing.T) {
	var f flates
	secrets := packed.New[corev1.Secret]()
	secrets.CodeTexts(f.codec)
	for i := range 300 {
		c := letter(i, 0, false)
		require.NoError(t, secrets.Add(&corev1.Secret{ObjectMeta: c.ObjectMeta, Data: map[string][]byte{"settings": []byte(c.Data["settings"])}}))
	}
	configs := packed.New[corev1.ConfigMap]()
	configs.CodeTexts(f.codec)
	configs.LearnNothing()
	replaceLetters(t, configs, 300, false)
	require.Zero(t, f.learned.Load())
	require.Zero(t, f.packed.Load())
}
