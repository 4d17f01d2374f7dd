package relay

import (
	"maps"
	"net/http"
)

// judge is the writer of an answer out of a copy. It keeps back an answer that refuses the request,
// so that the upstream can give its own.
type judge struct {
	http.ResponseWriter
	before http.Header // the header before the copy answered
	gone   func() bool // there is no copy any more, or the upstream has no such kind
	code   int
	kept   bool // the answer is kept back
}

func newJudge(w http.ResponseWriter, gone func() bool) *judge {
	return &judge{ResponseWriter: w, before: maps.Clone(w.Header()), gone: gone}
}

// WriteHeader implements [http.ResponseWriter].
func (j *judge) WriteHeader(code int) {
	if j.code != 0 {
		return
	}
	j.code, j.kept = code, refusal(code) || ofNoCopy(code) && j.gone()
	if !j.kept {
		j.ResponseWriter.WriteHeader(code)
		return
	}
	clear(j.Header())
	maps.Copy(j.Header(), j.before)
}

// Write implements [http.ResponseWriter].
func (j *judge) Write(p []byte) (int, error) {
	if j.code == 0 {
		j.WriteHeader(http.StatusOK)
	}
	if j.kept {
		return len(p), nil
	}
	return j.ResponseWriter.Write(p)
}

// refusal reports whether a copy cannot answer the request: it does not understand it, or has not
// the form or the version that it asks for.
func refusal(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusNotAcceptable, http.StatusGone, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// ofNoCopy reports whether a copy whose kind has vanished upstream gives such an answer: it is not
// served any more, or cannot be proven.
func ofNoCopy(code int) bool {
	switch code {
	case http.StatusNotFound, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Unwrap is for [http.ResponseController].
func (j *judge) Unwrap() http.ResponseWriter { return j.ResponseWriter }
