package relay

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ambiguous is the refusal of a request that the next server may read in another way than the relay
// does; nil for all others.
func ambiguous(r *http.Request) error {
	switch {
	case !isPlain(r.URL):
		return apierrors.NewBadRequest("the path has a segment that is empty, a dot segment, or an encoded separator, which servers read in different ways")
	case hidesIdentity(r.Header):
		return apierrors.NewBadRequest("the Connection header names a header that says who the client is, so that the API server would not see it")
	}
	return nil
}

// isPlain reports whether a path means the same before and after a server has cleaned it. Behind
// "proxy" is the path of another program, which may have empty segments and separators of its own.
func isPlain(u *url.URL) bool {
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	foreign := false
	for i, segment := range segments {
		text, err := url.PathUnescape(segment)
		if err != nil || slices.ContainsFunc(strings.FieldsFunc(text, separates), isDots) {
			return false
		}
		if !foreign && (text == "" && i < len(segments)-1 || strings.ContainsFunc(text, separates)) {
			return false
		}
		foreign = foreign || text == "proxy" && i >= 4 // api, version, resource, name
	}
	return true
}

// separates reports whether some server takes a character for the end of a segment, or decodes it
// once more.
func separates(r rune) bool { return strings.ContainsRune(`/\;%`, r) }

func isDots(part string) bool { return part == "." || part == ".." }

// hidesIdentity reports whether a client has a proxy drop a header that says who it is: a proxy
// drops the headers that Connection names.
func hidesIdentity(header http.Header) bool {
	for _, value := range header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if isIdentity(http.CanonicalHeaderKey(strings.TrimSpace(name))) {
				return true
			}
		}
	}
	return false
}

// isIdentity reports whether a header says who the client is.
func isIdentity(header string) bool {
	return header == "Authorization" || header == "Sec-Websocket-Protocol" ||
		strings.HasPrefix(header, "Impersonate-") || strings.HasPrefix(header, "X-Remote-")
}
