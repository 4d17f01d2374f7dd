package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	// writePatience is how long a client may take to accept one piece: a batch of a
	// watch, or a piece of another answer.
	writePatience = 30 * time.Second
	// writeBuffer holds a text before the connection sees it. It is also a piece of an
	// answer, so that a reader of less than 1.1 KB a second counts as stuck.
	writeBuffer = 32 << 10
)

// patientWriter is an answer that gives its client the patience anew for each piece of it. A stuck
// client would keep the goroutine, the state that is listed and its encodings without end.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	own     bool // whoever writes sets the deadlines, as a watch does
}

func newPatientWriter(w http.ResponseWriter) *patientWriter {
	return &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
}

// Write writes piece by piece. The last deadline stays, for the bytes that net/http writes after
// the handler: it takes the deadline back itself.
func (w *patientWriter) Write(p []byte) (written int, err error) {
	if w.own {
		return w.ResponseWriter.Write(p)
	}
	for {
		// Not every ResponseWriter has deadlines; without one, TCP notices a dead client.
		_ = w.control.SetWriteDeadline(time.Now().Add(writePatience))
		n, err := w.ResponseWriter.Write(p[written:min(len(p), written+writeBuffer)])
		if written += n; err != nil || written == len(p) {
			return written, err
		}
	}
}

// SetWriteDeadline is found by http.ResponseController.
func (w *patientWriter) SetWriteDeadline(t time.Time) error {
	w.own = true
	return w.control.SetWriteDeadline(t)
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// innermost is the writer of the http.Server; net/http looks at its type.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// outOfPatience has the error of a write that began at a time say if the client was too slow. An
// HTTP/2 server only says that the stream has ended.
func outOfPatience(began time.Time, err error) error {
	if err == nil || tooSlow(err) || time.Since(began) < writePatience {
		return err
	}
	return fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
}

func tooSlow(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
