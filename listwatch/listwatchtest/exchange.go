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

// exchange is one request under way, and the writer of its answer, which faults get to see before the client does.
type exchange struct {
	http.ResponseWriter
	Request
	server  *Server
	answer  http.Handler  // who answers
	request *http.Request // its context also ends when the exchange is cut, or with the test
	cancel  context.CancelFunc
	unhook  func() bool

	// Guarded by the server's lock.
	begun    bool // the header has been sent
	standing bool // and it was a 200
	broken   bool // the connection is to break off
	muted    bool // nothing gets through any more
}

// meetsFaults lets the faults act that act on requests, oldest first; true means that one has answered.
func (x *exchange) meetsFaults() (answered bool) {
	for _, f := range x.server.faultsNow() {
		if f.effect.request != nil && f.take(x) && f.effect.request(x) {
			return true
		}
	}
	return false
}

// end gives a cut or a muted exchange the end it is to have.
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

// breakOff ends the connection as a cable does that is pulled. The header goes out before that: net/http sends a GET
// again, unseen, when its connection breaks before the answer has begun.
func (x *exchange) breakOff() {
	x.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(x.ResponseWriter).Flush() // there is nobody to tell
	panic(http.ErrAbortHandler)
}

// cutLocked breaks off an exchange under way.
func (x *exchange) cutLocked() {
	x.broken = true
	x.cancel()
}

// muteLocked lets nothing through any more.
func (x *exchange) muteLocked() { x.muted = true }

// silence waits for the client to give up.
func (x *exchange) silence() {
	x.server.mu.Lock()
	x.muteLocked()
	x.server.mu.Unlock()
	<-x.request.Context().Done()
}

// pause waits for d, or for the end of the exchange.
func (x *exchange) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.request.Context().Done():
	}
}

// refuse answers with an error; one that is not an API status is an internal error of the server.
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
		panic(err) // strings and numbers
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(int(status.Code))
	_, _ = x.ResponseWriter.Write(document) // the client has gone: there is nobody to tell
}

// errCut is what the server behind sees of a connection that faults have cut.
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

// Write implements [http.ResponseWriter]. In a watch, each call is one event; in a list, one piece of up to 32 KiB.
func (x *exchange) Write(p []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	for _, f := range x.server.faultsNow() {
		// A list that has met a fault as a request does not meet it again with each of its pieces.
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

// FlushError is what [http.ResponseController] calls.
func (x *exchange) FlushError() error {
	if broken, muted := x.state(); broken || muted {
		return nil
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Unwrap lets [http.ResponseController] find the deadlines of the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
