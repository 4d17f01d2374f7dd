package watchcache

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

// pageToken says where a page of a list starts. On the wire it is base64 of JSON, and opaque to
// clients.
type pageToken struct {
	// Version is the resource version of the first page, which all pages show; latestVersion is for
	// a list that goes on in today's state, at the price of its consistency.
	Version int64 `json:"rv"`
	// Namespace and Name are those of the last object of the page before.
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
}

const latestVersion = -1

var errBadToken = errors.New("the continue token is not one of this server's: list again without it")

func parseToken(text string) (t pageToken, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	if err != nil || t.Name == "" || t.Version < latestVersion || t.Version == 0 {
		return t, errBadToken
	}
	return t, nil
}

func (t pageToken) String() string {
	encoded, err := json.Marshal(t)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}

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

// cut takes at most limit of the sorted objects, from the one after the token on; a limit of zero
// takes all.
func cut[T store.Object](objects []T, version uint64, from *pageToken, limit int64) (p Page[T], remaining int) {
	at := 0
	if from != nil {
		at = sort.Search(len(objects), func(i int) bool {
			return compareKeys(objects[i].GetNamespace(), objects[i].GetName(), from.Namespace, from.Name) > 0
		})
		objects = objects[at:]
	}
	p = Page[T]{Objects: objects, at: at, Meta: metav1.ListMeta{ResourceVersion: formatVersion(version)}}
	if limit > 0 && limit < int64(len(objects)) {
		p.Objects, remaining = objects[:limit], len(objects)-int(limit)
		last := p.Objects[limit-1]
		p.Meta.Continue = pageToken{Version: int64(version), Namespace: last.GetNamespace(), Name: last.GetName()}.String()
	}
	return p, remaining
}
