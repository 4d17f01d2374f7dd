package sharing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync"
)

// Hash makes digests of bytes under a key that never leaves the process. It is safe for concurrent
// use.
type Hash struct {
	gcm   cipher.AEAD
	nonce []byte
	words [blockSize / 8]uint64 // the key of blocks
	spare sync.Pool             // of *scratch
}

// Digest is a [Hash] of bytes. It means nothing to any other Hash.
type Digest [16]byte

// blockSize is how many bytes [Hash.Sum] compresses into 16.
const blockSize = 1024

// scratch is where a digest is made: slices that are given to an interface escape.
type scratch struct{ in, out []byte }

// ProcessHash is the hash of the process, made at the first call. It fails as [NewHash] does.
var ProcessHash = sync.OnceValues(NewHash)

// NewHash makes a hash with a key of its own. It fails if the process may not use GCM under
// nonces of its own (GODEBUG=fips140=only).
func NewHash() (*Hash, error) {
	var key [16]byte
	var words [blockSize]byte
	_, _ = rand.Read(key[:]) // never fails
	_, _ = rand.Read(words[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	h := &Hash{gcm: gcm, nonce: make([]byte, gcm.NonceSize())}
	for i := range h.words {
		h.words[i] = binary.LittleEndian.Uint64(words[8*i:])
	}
	h.spare.New = func() any { return &scratch{out: make([]byte, 0, gcm.Overhead())} }
	return h, nil
}

// Sum is the digest of a whole object. Blocks are compressed first, which is faster than GMAC;
// their results, the rest and the length then go through GMAC. Two inputs that were chosen without
// the key have equal digests with a chance below 2^-63. A digest is only ever compared with another
// digest of the same object, so that chances do not add up over a collection.
func (h *Hash) Sum(data []byte) Digest {
	r := h.spare.Get().(*scratch)
	defer h.spare.Put(r)
	r.in = binary.LittleEndian.AppendUint64(r.in[:0], uint64(len(data)))
	for len(data) >= blockSize {
		low, high := compress(&h.words, (*[blockSize]byte)(data))
		r.in = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(r.in, low), high)
		data = data[blockSize:]
	}
	r.in = append(r.in, data...)
	return Digest(h.gcm.Seal(r.out, h.nonce, nil, r.in))
}

// compress is NH with words of 64 bits (Black and others, "UMAC: Fast and Secure Message
// Authentication", CRYPTO '99): the sum of (data[i]+key[i]) * (data[i+1]+key[i+1]) for each even i.
// By their proof, two different blocks have the same sum for one key in 2^64.
func compress(key *[blockSize / 8]uint64, data *[blockSize]byte) (low, high uint64) {
	le := binary.LittleEndian
	for i := 0; i < len(key); i += 8 { // four products at a time keep the multiplier busy
		d, k := (*[64]byte)(data[8*i:]), (*[8]uint64)(key[i:])
		h0, l0 := bits.Mul64(le.Uint64(d[0:])+k[0], le.Uint64(d[8:])+k[1])
		h1, l1 := bits.Mul64(le.Uint64(d[16:])+k[2], le.Uint64(d[24:])+k[3])
		h2, l2 := bits.Mul64(le.Uint64(d[32:])+k[4], le.Uint64(d[40:])+k[5])
		h3, l3 := bits.Mul64(le.Uint64(d[48:])+k[6], le.Uint64(d[56:])+k[7])
		var carry uint64
		low, carry = bits.Add64(low, l0, 0)
		high, _ = bits.Add64(high, h0, carry)
		low, carry = bits.Add64(low, l1, 0)
		high, _ = bits.Add64(high, h1, carry)
		low, carry = bits.Add64(low, l2, 0)
		high, _ = bits.Add64(high, h2, carry)
		low, carry = bits.Add64(low, l3, 0)
		high, _ = bits.Add64(high, h3, carry)
	}
	return low, high
}

// key stands for bytes: the bytes themselves and their number if they are few, else their GMAC. For
// two inputs of n bytes that were chosen without the key of the Hash, the chance of equal results
// is below n/2^124.
type key [16]byte

func (m *decoder) keyOf(b []byte) (k key) {
	if len(b) < len(k) {
		copy(k[:], b)
		k[len(k)-1] = byte(len(b))
		return k
	}
	return key(m.hash.gcm.Seal(m.sum[:0], m.hash.nonce, nil, b))
}
