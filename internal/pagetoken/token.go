// Package pagetoken reads and writes the continue tokens of lists, in kube-apiserver's form: a
// reader may go on here with a page of another server on the same etcd, and the reverse.
package pagetoken

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// Token says where a page of a list starts.
type Token struct {
	APIVersion string `json:"v"`
	// Version is the resource version of the first page, which all pages show; [Latest] is for a
	// list that goes on in today's state, at the price of its consistency.
	Version int64 `json:"rv"`
	// Start is the first key of the page, which is NAMESPACE/NAME or NAME. On the wire it is behind
	// a slash, which may be missing.
	Start string `json:"start"`
}

const apiVersion = "meta.k8s.io/v1"

// Latest is the version of a token for a list that goes on in today's state.
const Latest = -1

var errBad = errors.New("the continue token is not of this collection: list again without it")

// Parse reads a token, and refuses one that could be meant to lead out of the collection.
func Parse(text string) (t Token, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	t.Start = strings.TrimPrefix(t.Start, "/")
	if err != nil || t.APIVersion != apiVersion || t.Start == "" || t.Version < Latest || t.Version == 0 || leaves(t.Start) {
		return t, errBad
	}
	return t, nil
}

func leaves(start string) bool {
	for _, part := range strings.Split(start, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return strings.HasPrefix(start, "/")
}

// From begins a page at a key.
func From(start string, version int64) Token {
	return Token{APIVersion: apiVersion, Version: version, Start: start}
}

// After begins a page after a key.
func After(key string, version int64) Token { return From(key+"\x00", version) }

func (t Token) String() string {
	t.Start = "/" + t.Start
	encoded, err := json.Marshal(t)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}
