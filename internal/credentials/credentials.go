// Package credentials marks the errors of a client that could not get its own credentials.
package credentials

// Error says that a request was not sent: the client has no credentials for it.
type Error struct{ Err error }

func (e *Error) Error() string { return "no credentials, so nothing was sent: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
