package sharing

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestBlocksAreCompressedByTheFormula computes NH a second time, in numbers of any size.
func TestBlocksAreCompressedByTheFormula(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	extremes := [2]byte{0, 0xff}
	for round := range 200 {
		data := [blockSize]byte(randomBytes(r, blockSize))
		var key [blockSize / 8]uint64
		for i := range key {
			key[i] = r.Uint64()
			switch round {
			case 0, 1: // every word, and every carry, at its highest or lowest
				key[i] = 0
				data = [blockSize]byte{}
				for j := range data {
					data[j] = extremes[round]
				}
			}
		}
		sum, word := new(big.Int), new(big.Int).Lsh(big.NewInt(1), 64)
		for i := 0; i < len(key); i += 2 {
			product := big.NewInt(1)
			for j := i; j < i+2; j++ {
				n := new(big.Int).SetUint64(binary.LittleEndian.Uint64(data[8*j:]))
				n.Add(n, new(big.Int).SetUint64(key[j]))
				product.Mul(product, n.Mod(n, word))
			}
			sum.Add(sum, product)
		}
		wantHigh, wantLow := new(big.Int).DivMod(sum.Mod(sum, new(big.Int).Mul(word, word)), word, new(big.Int))
		low, high := compress(&key, &data)
		require.Equal(t, wantLow.Uint64(), low)
		require.Equal(t, wantHigh.Uint64(), high)
	}
}

// TestEachBitIsInTheDigest changes one bit, one length or two blocks, at all edges of a block.
func TestEachBitIsInTheDigest(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	hash, err := NewHash()
	require.NoError(t, err)
	other, err := NewHash()
	require.NoError(t, err)
	for _, size := range []int{0, 1, 15, blockSize - 1, blockSize, blockSize + 1, 3*blockSize - 1, 3 * blockSize, 3*blockSize + 77} {
		data := randomBytes(r, size)
		sum := hash.Sum(data)
		require.Equal(t, sum, hash.Sum(append([]byte(nil), data...)), size)
		require.NotEqual(t, sum, other.Sum(data), "another key")
		require.NotEqual(t, sum, hash.Sum(append(data, 0)), size)
		for bit := range 8 * size {
			data[bit/8] ^= 1 << (bit % 8)
			require.NotEqual(t, sum, hash.Sum(data), "%d bytes, bit %d", size, bit)
			data[bit/8] ^= 1 << (bit % 8)
		}
	}
	data := randomBytes(r, 2*blockSize)
	swapped := append(append([]byte(nil), data[blockSize:]...), data[:blockSize]...)
	require.NotEqual(t, hash.Sum(data), hash.Sum(swapped))
}

func BenchmarkSum(b *testing.B) {
	hash, err := NewHash()
	require.NoError(b, err)
	data := make([]byte, 8400)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		hash.Sum(data)
	}
}
