package zstd

import (
	"math/rand/v2"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// New makes an empty store with the given indexes, as [packed.New] does. It panics if an index is
// nil.
func New[O any, T interface {
	*O
	store.Object
}](indexes ...store.AnyIndex[T]) *packed.Store[T] {
	s := packed.New[O, T](indexes...)
	s.CodeTexts(Codec)
	return s
}

const (
	dictionaryID  = 1
	maxDictionary = 64 << 10
	// maxDocument bounds the memory of an unpacked document. Larger objects do not come.
	maxDocument = 256 << 20
)

// Codec is the codec for stores of [packed.Like], by [packed.Store.CodeTexts].
func Codec(samples [][]byte) (pack func(dst, document []byte) []byte, unpack func(dst, code []byte) ([]byte, error)) {
	dictionary := dictionaryOf(samples)
	// Pools let idle coders go: each has tables of some 500 KB.
	encoders := sync.Pool{New: func() any {
		return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10), zstd.WithEncoderDictRaw(dictionaryID, dictionary)))
	}}
	decoders := sync.Pool{New: func() any {
		return must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxDocument),
			zstd.WithDecoderDictRaw(dictionaryID, dictionary)))
	}}
	pack = func(dst, document []byte) []byte {
		e := encoders.Get().(*zstd.Encoder)
		defer encoders.Put(e)
		return e.EncodeAll(document, dst)
	}
	unpack = func(dst, code []byte) ([]byte, error) {
		d := decoders.Get().(*zstd.Decoder)
		defer decoders.Put(d)
		return d.DecodeAll(code, dst)
	}
	return pack, unpack
}

// dictionaryOf is whole samples from all over the collection: what objects have in common is in
// their ends, too. It takes at most a quarter of the samples, so that few objects do not pay more
// for it than they save. A large sample leaves room for three others.
func dictionaryOf(samples [][]byte) (dictionary []byte) {
	total := 0
	for _, sample := range samples {
		total += len(sample)
	}
	room := min(maxDictionary, total/4)
	dictionary = make([]byte, 0, room)
	// Not in their order: neighbours have much in common.
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(samples)) {
		sample := samples[i]
		dictionary = append(dictionary, sample[:min(len(sample), room/4, room-len(dictionary))]...)
	}
	return dictionary
}

// must panics on an error of the options, which are our own.
func must[C any](coder C, err error) C {
	if err != nil {
		panic("zstd: " + err.Error())
	}
	return coder
}
