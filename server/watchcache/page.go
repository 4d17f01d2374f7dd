package watchcache

import (
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/store"
)

// Page is a LIST's answer: the objects, shared and read-only, and the metadata of the list.
type Page[T store.Object] struct {
	Objects []T
	Meta    metav1.ListMeta

	whole *listing[T] // nil if the page is not a part of it
	at    int         // the index of the first object there
}

// Encode returns the encodings of the objects in one format, any comparable value. encode makes
// them, and must give the same for all readers that name the format.
func (p Page[T]) Encode(format any, encode func(T) ([]byte, error)) Encodings[T] {
	if p.whole == nil {
		return Encodings[T]{objects: p.Objects, encode: encode}
	}
	return p.whole.encodings(p.at, p.at+len(p.Objects), format, encode)
}

// cut takes at most the request's limit of the sorted objects, from the one after the token on; a
// limit of zero takes all.
func cut[T store.Object](objects []T, version uint64, from *pagetoken.Token, r Request) (p Page[T], remaining int) {
	at, limit := 0, r.Limit
	if from != nil {
		at = sort.Search(len(objects), func(i int) bool {
			return store.KeyOf(objects[i]) >= from.Start
		})
		objects = objects[at:]
	}
	p = Page[T]{Objects: objects, at: at, Meta: metav1.ListMeta{ResourceVersion: formatVersion(version)}}
	if limit > 0 && limit < int64(len(objects)) {
		p.Objects, remaining = objects[:limit], len(objects)-int(limit)
		last := p.Objects[limit-1]
		p.Meta.Continue = pagetoken.After(r.belowKeys(store.KeyOf(last)), int64(version)).String()
	}
	return p, remaining
}
