package access

import (
	"errors"
	"net/http"
)

// marked is an error of a known class.
type marked struct {
	class string
	err   error
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Mark says of which class a problem is. Classes are label values: words in snake case, few in
// number. A class that an API server's errors have too has the text of reflector.Class.
func Mark(class string, err error) error { return &marked{class, err} }

// ClassOf is the class by which err, or an error in it, was marked; empty if none was.
func ClassOf(err error) string {
	var m *marked
	if !errors.As(err, &m) {
		return ""
	}
	return m.class
}

// classOfStatus is the class of a refusal by HTTP status.
func classOfStatus(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "unauthorized"
	case status == http.StatusForbidden:
		return "forbidden"
	case status == http.StatusNotFound, status == http.StatusGone:
		return "not_found"
	case status == http.StatusTooManyRequests:
		return "throttled"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "refused"
}
