package sharing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"sync"
)

// Hash makes digests of bytes: GMAC under a key that never leaves the process. For two inputs of
// n bytes that were chosen without the key, the chance of equal digests is below n/2^124. It is
// safe for concurrent use.
type Hash struct {
	gcm   cipher.AEAD
	nonce []byte
	sums  sync.Pool // of *[]byte, since what is given to an interface escapes
}

// Digest is a [Hash] of bytes. It means nothing to any other Hash.
type Digest [16]byte

// NewHash makes a hash with a key of its own. It fails if the process may not use GCM under
// nonces of its own (GODEBUG=fips140=only).
func NewHash() (*Hash, error) {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Hash{
		gcm: gcm, nonce: make([]byte, gcm.NonceSize()),
		sums: sync.Pool{New: func() any { sum := make([]byte, 0, gcm.Overhead()); return &sum }},
	}, nil
}

// Sum is the digest of data.
func (h *Hash) Sum(data []byte) Digest {
	sum := h.sums.Get().(*[]byte)
	defer h.sums.Put(sum)
	return Digest(h.seal(*sum, data))
}

// seal appends the digest of data to into.
func (h *Hash) seal(into, data []byte) []byte { return h.gcm.Seal(into, h.nonce, nil, data) }
