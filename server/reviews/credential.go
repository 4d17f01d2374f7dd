package reviews

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// credential is the proof of identity that a request has.
type credential struct {
	presented []*x509.Certificate // of the connection; empty: none
	token     string              // empty: none
}

// appendTo encodes a credential, for its key.
func (c credential) appendTo(b []byte) []byte {
	for _, certificate := range c.presented {
		b = appendPart(b, certificate.Raw)
	}
	return appendPart(appendPart(b, nil), []byte(c.token))
}

// appendPart appends bytes and their number, so that no two lists of parts are alike.
func appendPart(b, part []byte) []byte {
	n := len(part)
	return append(append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), part...)
}

var (
	errTwoHeaders   = errors.New("the request has more than one Authorization header")
	errBadToken     = errors.New("the bearer token is not valid UTF-8")
	errLongToken    = errors.New("the bearer token is longer than 64 KiB")
	errTwoTokens    = errors.New("the web socket's subprotocols have more than one bearer token")
	errBadProtocol  = errors.New("the bearer token in the web socket's subprotocol is not in base64url of valid UTF-8")
	errOnlyProtocol = errors.New("the web socket needs another subprotocol beside that of the bearer token, for the server to choose")
)

// credentialOf finds the credential of a request. As on the API server, a request with none may
// still have an Authorization header of another scheme, which does not count.
func credentialOf(r *http.Request) (c credential, err error) {
	if r.TLS != nil {
		c.presented = r.TLS.PeerCertificates
	}
	c.token, err = bearerToken(r.Header["Authorization"])
	if err == nil && c.token == "" && isWebSocket(r) {
		c.token, err = protocolToken(r.Header)
	}
	if err == nil && len(c.token) > mostToken {
		err = errLongToken
	}
	return c, err
}

// mostToken is longer than any token that is in use: a user of some hundred groups has one of some
// 10 KiB.
const mostToken = 64 << 10

func bearerToken(headers []string) (string, error) {
	if len(headers) > 1 {
		return "", errTwoHeaders
	}
	parts := strings.SplitN(strings.TrimSpace(strings.Join(headers, "")), " ", 3) // of one at most
	if len(parts) < 2 || !strings.EqualFold(parts[0], "bearer") {
		return "", nil
	}
	if !valid(parts[1]) {
		return "", errBadToken
	}
	return parts[1], nil
}

const (
	protocolHeader = "Sec-Websocket-Protocol"
	// bearerProtocol begins a subprotocol that has a token. A web page can set no header of a web
	// socket but its subprotocols.
	bearerProtocol = "base64url.bearer.authorization.k8s.io."
)

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// protocols splits the subprotocols that a client offers into those with a token and the others.
func protocols(h http.Header) (tokens, others []string) {
	for _, header := range h[protocolHeader] {
		for protocol := range strings.SplitSeq(header, ",") {
			protocol = strings.TrimSpace(protocol)
			if token, ok := strings.CutPrefix(protocol, bearerProtocol); ok {
				tokens = append(tokens, token)
			} else {
				others = append(others, protocol)
			}
		}
	}
	return tokens, others
}

func protocolToken(h http.Header) (string, error) {
	tokens, others := protocols(h)
	switch {
	case len(tokens) == 0:
		return "", nil
	case len(tokens) > 1:
		return "", errTwoTokens
	case len(others) == 0:
		return "", errOnlyProtocol
	}
	token, err := base64.RawURLEncoding.DecodeString(tokens[0])
	if err != nil || !utf8.Valid(token) {
		return "", errBadProtocol
	}
	return string(token), nil
}

// withoutProtocolToken is a request without the subprotocol that has the token: the server must
// choose another, and would send a token back.
func withoutProtocolToken(r *http.Request) *http.Request {
	tokens, others := protocols(r.Header)
	if len(tokens) == 0 {
		return r
	}
	r = r.WithContext(r.Context())
	r.Header = r.Header.Clone()
	r.Header.Set(protocolHeader, strings.Join(others, ","))
	return r
}

// valid reports whether texts go through JSON unchanged.
func valid(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) })
}
