package etcd

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// pageToken says where a page of a list starts. Its form is kube-apiserver's, so that a reader may
// go on here with a page of a server on the same etcd, and the reverse.
type pageToken struct {
	APIVersion string `json:"v"`
	// Version is the revision of the first page, which all pages show; latestVersion is for a list
	// that goes on in today's state, at the price of its consistency.
	Version int64 `json:"rv"`
	// Start is the first key of the page below the prefix, behind a slash that may be missing.
	Start string `json:"start"`
}

const (
	tokenVersion  = "meta.k8s.io/v1"
	latestVersion = -1
)

var errBadToken = errors.New("the continue token is not of this collection: list again without it")

func parseToken(text string) (t pageToken, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	t.Start = strings.TrimPrefix(t.Start, "/")
	if err != nil || t.APIVersion != tokenVersion || t.Start == "" || t.Version < latestVersion || t.Version == 0 || leaves(t.Start) {
		return t, errBadToken
	}
	return t, nil
}

// leaves reports whether a key could be meant to lead out of the prefix.
func leaves(start string) bool {
	for _, part := range strings.Split(start, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return strings.HasPrefix(start, "/")
}

// tokenAfter begins a page after a key, which is without the prefix.
func tokenAfter(key string, version int64) string {
	return pageToken{APIVersion: tokenVersion, Version: version, Start: key + "\x00"}.String()
}

func (t pageToken) String() string {
	t.Start = "/" + t.Start
	encoded, err := json.Marshal(t)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}
