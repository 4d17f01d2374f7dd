package packed

// Codec learns from samples of documents how to code others of their kind. The samples are valid
// until it returns. pack appends a document's code to dst, and unpack the document of a code.
// Several goroutines may call unpack, and unpack an older generation's codes beside a newer one's.
type Codec func(samples [][]byte) (pack func(dst, document []byte) []byte, unpack func(dst, code []byte) ([]byte, error))

// CodeTexts lets the store code objects with a codec that have no sibling, such as ConfigMaps of
// text. Without one, just their letters are coded. The codec learns once the store has many
// objects, and anew as the store does. It sees no Secret, and nothing of a store that learns
// nothing.
//
// Call it before the first write. Package [github.com/tributary-go/tributary/store/packed/zstd] has
// a codec, in a module of its own.
func (s *Store[T]) CodeTexts(codec Codec) {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.kin.codec = codec
}
