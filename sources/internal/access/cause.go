package access

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

var errWantsHTTPS = Mark("refused", errors.New("it speaks HTTPS: begin the manifest URL with https://"))

// tlsAnswer is how net/http quotes the start of a TLS alert that answers a plain request.
const tlsAnswer = `malformed HTTP response "\x15\x03`

var errRedirect = Mark("refused", errors.New("the server redirects, which is not followed"))

// cause is the reason of a failed request, without any part of the address, the headers or the
// answer. The errors of net/http quote the whole URL, and lines that it cannot parse.
func (c *Client) cause(err error) error {
	if isTimeout(err) {
		return fmt.Errorf("no complete answer within %s: %w", c.settings.Timeout, context.DeadlineExceeded)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	switch {
	case isPlain(err):
		return err
	case strings.Contains(err.Error(), tlsAnswer):
		return fmt.Errorf("the server did not answer in HTTP: %w", errWantsHTTPS)
	}
	return fmt.Errorf("the request failed (%T; its text is left out, as it may quote the answer)", err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isPlain reports whether the text of an error has only addresses and reasons, and never quotes
// data.
func isPlain(err error) bool {
	for _, plain := range []error{
		errRedirect, io.EOF, io.ErrUnexpectedEOF, gzip.ErrHeader, gzip.ErrChecksum, http.ErrSchemeMismatch, context.Canceled,
	} {
		if errors.Is(err, plain) {
			return true
		}
	}
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &network) || errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert)
}
