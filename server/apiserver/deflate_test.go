package apiserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGzipStreamsAreRead by compress/gzip, whatever parts of them were compressed before.
func TestGzipStreamsAreRead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		var b strings.Builder
		for range random.IntN(3000) {
			fmt.Fprintf(&b, "%d,", random.IntN(50))
		}
		return b.String()
	}
	var pieces []*piece
	var said []string
	for range 10 {
		all := ""
		p, err := newPiece(func(w io.Writer) error {
			for range random.IntN(4) {
				part := text()
				all += part
				_, _ = io.WriteString(w, part)
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, len(all), p.size)
		pieces, said = append(pieces, p), append(said, all)
	}
	for range 200 {
		var body bytes.Buffer
		want := ""
		s := newGzipStream(&body)
		for range random.IntN(12) {
			switch i := random.IntN(len(pieces)); random.IntN(4) {
			case 0:
				require.NoError(t, s.Flush())
			case 1:
				part := text()
				want += part
				_, err := io.WriteString(s, part)
				require.NoError(t, err)
			default:
				want += said[i]
				require.NoError(t, s.writePiece(pieces[i]))
			}
		}
		require.NoError(t, s.Close())
		z, err := gzip.NewReader(&body) // checks the length and the checksum at the end
		require.NoError(t, err)
		z.Multistream(false)
		got, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.Zero(t, body.Len())
	}
}

// TestCombine against the checksum of the whole, up to the length of a long list.
func TestCombine(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, length := range []int{0, 1, 7, 8, 255, 4096, 1<<20 + 3, 1 << 25} {
		whole := make([]byte, 1000+length)
		_, _ = random.Read(whole)
		first, second := crc32.ChecksumIEEE(whole[:1000]), crc32.ChecksumIEEE(whole[1000:])
		require.Equal(t, crc32.ChecksumIEEE(whole), combine(first, second, length), "%d bytes", length)
	}
}
