package listwatchtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchange is one request in flight, and the writer of its answer: faults act on the answer before
// the client sees it.
type exchange struct {
	http.ResponseWriter
	Request
	server  *Server
	answer  http.Handler  // the server behind the faults
	request *http.Request // its context ends also when the exchange is cut, and with the test
	cancel  context.CancelFunc
	unhook  func() bool

	// Guarded by the server's lock.
	begun    bool // the header has been sent
	standing bool // with status 200
	broken   bool // the connection must break off
	muted    bool // nothing passes any more
}

// meetsFaults lets faults act on the request, oldest first; true means that a fault has answered
// it.
func (x *exchange) meetsFaults() (answered bool) {
	for _, f := range x.server.faultsNow() {
		if f.effect.request != nil && f.take(x) && f.effect.request(x) {
			return true
		}
	}
	return false
}

// end finishes a cut or muted exchange as its fault demands.
func (x *exchange) end() {
	broken, muted := x.state()
	if muted {
		<-x.request.Context().Done()
	}
	if broken || muted {
		x.breakOff()
	}
}

func (x *exchange) state() (broken, muted bool) {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	return x.broken, x.muted
}

// breakOff ends the connection like a pulled cable. It sends the header first: net/http silently
// repeats a GET if its connection breaks before the answer has begun.
func (x *exchange) breakOff() {
	x.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(x.ResponseWriter).Flush() // the client has gone
	panic(http.ErrAbortHandler)
}

func (x *exchange) cutLocked() {
	x.broken = true
	x.cancel()
}

func (x *exchange) muteLocked() { x.muted = true }

// silence blocks until the client gives up.
func (x *exchange) silence() {
	x.server.mu.Lock()
	x.muteLocked()
	x.server.mu.Unlock()
	<-x.request.Context().Done()
}

// pause ends early if the exchange does.
func (x *exchange) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.request.Context().Done():
	}
}

// refuse answers with an error. An error that is not an API status becomes an internal error of the
// server.
func (x *exchange) refuse(err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	document, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status holds strings and numbers only, so it marshals
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(int(status.Code))
	_, _ = x.ResponseWriter.Write(document) // the client has gone
}

// errCut is the error that the server behind the faults sees on a cut connection.
var errCut = errors.New("listwatchtest: a fault cut this connection")

// WriteHeader implements [http.ResponseWriter].
func (x *exchange) WriteHeader(code int) {
	x.server.mu.Lock()
	first := !x.begun
	x.begun, x.standing = true, x.standing || first && code == http.StatusOK
	x.server.broadcastLocked()
	x.server.mu.Unlock()
	if first {
		x.ResponseWriter.WriteHeader(code)
	}
}

// Write implements [http.ResponseWriter]. In a watch, each call is one event; in a list, one piece
// of up to 32 KiB.
func (x *exchange) Write(p []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	for _, f := range x.server.faultsNow() {
		// A fault that struck a list as a request does not strike its pieces too.
		if f.effect.write != nil && (x.Verb == Watch || f.effect.request == nil) && f.take(x) {
			f.effect.write(x, p)
		}
	}
	broken, muted := x.state()
	if muted {
		<-x.request.Context().Done()
	}
	if broken || muted {
		return 0, errCut
	}
	return x.ResponseWriter.Write(p)
}

// FlushError is called by [http.ResponseController].
func (x *exchange) FlushError() error {
	if broken, muted := x.state(); broken || muted {
		return nil
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap lets [http.ResponseController] find the deadlines of the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
