package delta

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWordsAreShort: the table has room for every word, however uneven the counts, and the words
// fill it: each sequence of bits is some text.
func TestWordsAreShort(t *testing.T) {
	var steep []byte
	for b := range 30 {
		steep = append(steep, bytes.Repeat([]byte{byte(b)}, 1<<min(b, 16))...)
	}
	for _, samples := range [][]byte{nil, steep, bytes.Repeat([]byte{7}, 1<<20), []byte("text")} {
		c := newCode(samples)
		require.LessOrEqual(t, slices.Max(c.sizes[:]), uint8(codeBits))
		require.NotZero(t, slices.Min(c.sizes[:]))
		filled := 0
		for _, size := range c.sizes {
			filled += 1 << (codeBits - size)
		}
		require.Equal(t, 1<<codeBits, filled)
	}
}

// TestFrequentBytesHaveShortWords: a code of digits takes digits in half of their bytes.
func TestFrequentBytesHaveShortWords(t *testing.T) {
	c := newCode(bytes.Repeat([]byte("0123456789"), 100))
	require.LessOrEqual(t, c.length(bytes.Repeat([]byte("0123456789"), 10)), 50)
}

func TestTextSurvivesItsCode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newCode([]byte("some text, of which all else is coded as well"))
	for n := range 300 {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(random.IntN(1 + n))
		}
		coded := c.append(nil, data)
		require.Len(t, coded, c.length(data))
		got, err := c.decode(nil, coded, n)
		require.NoError(t, err)
		require.Equal(t, string(data), string(got))
		if n > 0 {
			_, err = c.decode(nil, coded[:len(coded)-1], n)
			require.ErrorIs(t, err, ErrDamaged, "a byte is missing")
		}
		_, err = c.decode(nil, append(coded, 0), n)
		require.ErrorIs(t, err, ErrDamaged, "a byte is too many")
	}
}
