package delta

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// learned are the codes of texts that have no base.
func learned(texts ...[]byte) *codes {
	var of counts
	for _, text := range texts {
		of.add(alone(text).spell(text))
	}
	return newCodes(&of)
}

// alone is the script of a text without a base.
func alone(text []byte) *script {
	return &script{ops: binary.AppendUvarint(nil, uint64(len(text))), literals: text}
}

// TestWordsAreShort: the tables have room for every word, however uneven the counts, and the words
// fill them: each sequence of bits is some text.
func TestWordsAreShort(t *testing.T) {
	var steep []byte
	for b := range 30 {
		steep = append(steep, bytes.Repeat([]byte{byte(b)}, 1<<min(b, 16))...)
	}
	every := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{}).Read(every)
	for _, samples := range [][]byte{nil, steep, every, bytes.Repeat([]byte{7}, 1<<20), []byte("text")} {
		c := learned(samples)
		for context := range contexts {
			for _, e := range c.tables[context] {
				size := e.info % escaped
				require.True(t, size >= 1 && size <= codeBits)
			}
		}
		for _, word := range c.words {
			size := word >> wordBits
			require.True(t, size >= 1 && size <= maxWord)
		}
	}
}

// TestAContextHasItsOwnWords: digits take half of their bytes after digits, whatever else there is.
func TestAContextHasItsOwnWords(t *testing.T) {
	digits := bytes.Repeat([]byte("0123456789"), 20)
	others := bytes.Repeat([]byte("SOME OTHER TEXT, IN WHICH NO DIGITS ARE. "), 50)
	c := learned(digits, others)
	require.LessOrEqual(t, len(c.append(nil, alone(digits).spell(digits))), len(digits)/2+2)
}

func TestTextSurvivesItsCodes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	c := learned([]byte("some text, of which all else is coded as well: 0123456789abcdef-0123"))
	for n := 1; n < 400; n++ {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(random.IntN(min(1+n, 256)))
		}
		words := c.append(nil, alone(text).spell(text))
		got, err := c.run(make([]byte, n), words, nil)
		require.NoError(t, err)
		require.Equal(t, string(text), string(got))
		_, err = c.run(make([]byte, n), words[:len(words)-1], nil)
		require.ErrorIs(t, err, ErrDamaged, "a byte is missing")
		_, err = c.run(make([]byte, n), append(words, 0), nil)
		require.ErrorIs(t, err, ErrDamaged, "a byte is too many")
	}
}
