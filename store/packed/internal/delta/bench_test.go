package delta_test

import (
	"bytes"
	"compress/flate"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// BenchmarkPack packs siblings in the order of a list, 50 of a family. flate has the samples as its
// dictionary, since it has no siblings.
func BenchmarkPack(b *testing.B) {
	documents := listed()
	b.Run("delta", func(b *testing.B) {
		var p delta.Packer
		near, size, i := delta.Learn(samples()...).Root(), 0, 0
		for b.Loop() {
			payload, of := p.Pack(nil, documents[i%len(documents)], near)
			if size += len(payload); of != near {
				size += of.Len()
			}
			near = of
			i++
		}
		b.ReportMetric(float64(size)/float64(i), "B/document")
	})
	b.Run("flate", func(b *testing.B) {
		var out bytes.Buffer
		w, err := flate.NewWriterDict(&out, flate.DefaultCompression, bytes.Join(samples(), nil))
		require.NoError(b, err)
		size, i := 0, 0
		for b.Loop() {
			packFlate(w, &out, documents[i%len(documents)])
			size += out.Len()
			i++
		}
		b.ReportMetric(float64(size)/float64(i), "B/document")
	})
}

// BenchmarkUnpack opens one document of one family after the other, so that no base is at hand.
func BenchmarkUnpack(b *testing.B) {
	documents := listed()
	b.Run("delta", func(b *testing.B) {
		var p delta.Packer
		var payloads [][]byte
		var bases []*delta.Base
		near := delta.Learn(samples()...).Root()
		for _, d := range documents {
			payload, of := p.Pack(nil, d, near)
			payloads, bases, near = append(payloads, payload), append(bases, of), of
		}
		var u delta.Unpacker
		var buffer []byte
		var err error
		i := 0
		for b.Loop() {
			at := i * 51 % len(documents)
			if buffer, err = u.Unpack(buffer, payloads[at], bases[at]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("flate", func(b *testing.B) {
		dictionary := bytes.Join(samples(), nil)
		var out bytes.Buffer
		w, err := flate.NewWriterDict(&out, flate.DefaultCompression, dictionary)
		require.NoError(b, err)
		var payloads [][]byte
		for _, d := range documents {
			packFlate(w, &out, d)
			payloads = append(payloads, bytes.Clone(out.Bytes()))
		}
		r := flate.NewReaderDict(bytes.NewReader(nil), dictionary)
		buffer := make([]byte, 16<<10)
		i := 0
		for b.Loop() {
			_ = r.(flate.Resetter).Reset(bytes.NewReader(payloads[i*51%len(documents)]), dictionary)
			if _, err := io.ReadFull(r, buffer); err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
			i++
		}
	})
}

func listed() (documents [][]byte) {
	for i := range 1000 {
		documents = append(documents, sibling(1000+i/50, i))
	}
	return documents
}

func packFlate(w *flate.Writer, out *bytes.Buffer, document []byte) {
	out.Reset()
	w.Reset(out) // which keeps the dictionary
	_, _ = w.Write(document)
	_ = w.Close()
}
