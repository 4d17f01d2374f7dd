package delta_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// sibling is a document of a family: most of it is the family's, the rest its own.
func sibling(family, number int) []byte {
	random := rand.New(rand.NewPCG(uint64(family), uint64(number)))
	common := rand.New(rand.NewPCG(uint64(family), 1<<40))
	var b strings.Builder
	for line := range 120 {
		fmt.Fprintf(&b, "field-%03d of the document: %x\n", line, common.Uint64())
		if line%12 == 0 {
			fmt.Fprintf(&b, "uid: %08x-%04x, seen: 2026-11-%02dT05:%02d:%02dZ\n", random.Uint32(), random.Uint32()>>16, random.IntN(30), random.IntN(60), random.IntN(60))
		}
	}
	return []byte(b.String())
}

// samples are what a generation is learned from.
func samples() (all [][]byte) {
	for i := range 16 {
		all = append(all, sibling(i/4, i))
	}
	return all
}

func unpacked(t testing.TB, payload []byte, of *delta.Base) []byte {
	t.Helper()
	var u delta.Unpacker
	document, err := u.Unpack(nil, payload, of)
	require.NoError(t, err)
	return document
}

// TestSiblingsAreSmall: a family's first document is the base of the others.
func TestSiblingsAreSmall(t *testing.T) {
	var p delta.Packer
	near := delta.Learn(samples()...).Root()
	bases, size := 0, 0
	for family := range 10 {
		for number := range 20 {
			document := sibling(100+family, number)
			payload, of := p.Pack(nil, document, near)
			require.NotNil(t, of)
			if of != near {
				bases++
				size += of.Len()
			}
			near = of
			size += len(payload)
			require.Equal(t, document, unpacked(t, payload, of))
		}
	}
	require.Equal(t, 10, bases, "one for each family")
	require.Less(t, size/200, len(sibling(0, 0))/12)
}

// TestUnlikeIsPlain: a document that has nothing in common with the base is kept as it is.
func TestUnlikeIsPlain(t *testing.T) {
	random := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for _, g := range []*delta.Generation{delta.Learn(samples()...), delta.Small(sibling(1, 1))} {
		var p delta.Packer
		payload, of := p.Pack(nil, random, g.Root())
		require.Nil(t, of)
		require.Equal(t, random, payload)
		require.Equal(t, random, unpacked(t, payload, of))
	}
}

// TestUnlikeTextIsCoded: texts without siblings are still made of the same few letters.
func TestUnlikeTextIsCoded(t *testing.T) {
	text := func(i int) []byte {
		random := rand.New(rand.NewPCG(uint64(i), 5))
		words := make([]byte, 6000)
		for at := range words {
			words[at] = "etaoin shrdlu\n"[min(random.IntN(14), random.IntN(14))]
		}
		return words
	}
	g := delta.Learn(text(1), text(2), text(3))
	var p delta.Packer
	for i := range 5 {
		payload, of := p.Pack(nil, text(10+i), g.Root())
		require.Same(t, g.Root(), of, "it is no base for others")
		require.Less(t, len(payload), 6000/2)
		require.Equal(t, text(10+i), unpacked(t, payload, of))
	}
}

// TestASmallGenerationHasOneBase: few documents are kept against the first.
func TestASmallGenerationHasOneBase(t *testing.T) {
	g := delta.Small(sibling(1, 1))
	var p delta.Packer
	for number := range 3 {
		payload, of := p.Pack(nil, sibling(1, number), g.Root())
		require.Same(t, g.Root(), of)
		require.Less(t, len(payload), 700)
		require.Equal(t, sibling(1, number), unpacked(t, payload, of))
	}
	require.Equal(t, len(sibling(1, 1)), g.Root().Len())
	require.Same(t, g, g.Root().Generation())
}

// TestAPackerServesManyGenerations: one that comes from a pool has packed for others before.
func TestAPackerServesManyGenerations(t *testing.T) {
	var p delta.Packer
	var u delta.Unpacker
	var bases []*delta.Base
	for i := range 4 {
		bases = append(bases, delta.Learn(samples()[i:]...).Root(), delta.Small(sibling(i, 9)).Root())
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		at := random.IntN(len(bases))
		document := sibling(random.IntN(5), random.IntN(100))
		payload, of := p.Pack(nil, document, bases[at])
		if of != nil {
			bases[at] = of
		}
		got, err := u.Unpack(nil, payload, of)
		require.NoError(t, err)
		require.Equal(t, document, got)
	}
}

func TestReadersShareAGeneration(t *testing.T) {
	var p delta.Packer
	near := delta.Learn(samples()...).Root()
	_, near = p.Pack(nil, sibling(50, 0), near)
	payload, of := p.Pack(nil, sibling(50, 1), near)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var u delta.Unpacker
			var mine delta.Packer
			for i := range 50 {
				if got, err := u.Unpack(nil, payload, of); err != nil || !bytes.Equal(got, sibling(50, 1)) {
					t.Error("another document", err)
				}
				mine.Pack(nil, sibling(50, i), near)
			}
		})
	}
	readers.Wait()
}

// TestTooLongIsPlain: its places would not fit into the table.
func TestTooLongIsPlain(t *testing.T) {
	document := make([]byte, delta.MaxDocument+1)
	var p delta.Packer
	payload, of := p.Pack(nil, document, delta.Small([]byte("short")).Root())
	require.Nil(t, of)
	require.Len(t, payload, len(document))
}

// FuzzPack packs any document after any samples, with and without codes.
func FuzzPack(f *testing.F) {
	f.Add([]byte("one document"), []byte("one document, and more"), []byte("another"))
	f.Add(sibling(1, 1), sibling(1, 2), sibling(2, 1))
	f.Add([]byte{}, []byte{}, bytes.Repeat([]byte{0}, 3000))
	f.Fuzz(func(t *testing.T, first, second, document []byte) {
		for _, g := range []*delta.Generation{
			delta.Small(first), delta.Learn(first), delta.Learn(first, second), delta.Learn(append(samples(), first, second)...),
		} {
			var p delta.Packer
			near := g.Root()
			for _, d := range [][]byte{first, document, second, document, first} {
				payload, of := p.Pack([]byte("head"), d, near)
				require.Equal(t, "head", string(payload[:4]))
				require.Equal(t, string(d), string(unpacked(t, payload[4:], of)))
				if of != nil {
					near = of
				}
			}
		}
	})
}

// FuzzUnpack opens damaged payloads: the result is an error, or a document within the bounds.
func FuzzUnpack(f *testing.F) {
	learned := delta.Learn(samples()...)
	var p delta.Packer
	_, base := p.Pack(nil, sibling(7, 0), learned.Root())
	for i := range 4 {
		payload, of := p.Pack(nil, sibling(7, i), base)
		require.Same(f, base, of)
		f.Add(payload)
		f.Add(payload[:len(payload)/2])
		f.Add(append(payload, 0))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0x1f, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0x1f, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, of := range []*delta.Base{base, learned.Root(), delta.Small(nil).Root(), nil} {
			var u delta.Unpacker
			document, err := u.Unpack(nil, payload, of)
			if err != nil {
				require.ErrorIs(t, err, delta.ErrDamaged)
				continue
			}
			require.LessOrEqual(t, len(document), delta.MaxDocument)
		}
	})
}

// TestAFalseLengthCostsNothing: a payload of some bytes claims a document of 63 MiB.
func TestAFalseLengthCostsNothing(t *testing.T) {
	payload := []byte{0x80, 0x80, 0x80, 0x1f, 0, 0}
	result := testing.Benchmark(func(b *testing.B) {
		var u delta.Unpacker
		for b.Loop() {
			_, err := u.Unpack(nil, payload, delta.Small([]byte("root")).Root())
			require.ErrorIs(b, err, delta.ErrDamaged)
		}
	})
	require.Less(t, result.AllocedBytesPerOp(), int64(1<<12))
}
