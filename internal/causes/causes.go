// Package causes marks errors by their cause: the reader of a collection finds it, and the
// reflector turns it into a class.
package causes

import "iter"

// Credentials says that a request was not sent: the client has no credentials for it.
type Credentials struct{ Err error }

func (e *Credentials) Error() string {
	return "no credentials, so nothing was sent: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Credentials) Unwrap() error { return e.Err }

// WrongAnswer says that the answer is not that of a Kubernetes API to this request.
type WrongAnswer struct{ Err error }

func (e *WrongAnswer) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *WrongAnswer) Unwrap() error { return e.Err }

// Each yields all errors under a name, for a metrics.Explainer.
func Each(name string, all []error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, err := range all {
			if !yield(name, err) {
				return
			}
		}
	}
}
