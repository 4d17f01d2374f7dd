package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// respondError answers with a Status. Nothing may have been written yet.
func respondError(w http.ResponseWriter, f format, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	respondStatus(w, f, status)
}

// RespondError answers with the Status of an error in JSON, for handlers around a [Server]. An
// error that is no API status is a 503 or 504 if a context has ended, else a 500.
func RespondError(w http.ResponseWriter, err error) { respondError(w, plainJSON, err) }

// respondSuccess answers with a Status that tells of a success.
func respondSuccess(c call, code int, details *metav1.StatusDetails) error {
	doc, err := statusDocument(c.format, &metav1.Status{
		TypeMeta: typeMeta("Status", "v1"), Status: metav1.StatusSuccess, Details: details,
	})
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), code, doc)
	return nil
}

func respondStatus(w http.ResponseWriter, f format, status *metav1.Status) {
	doc, err := statusDocument(f, status)
	if err != nil {
		http.Error(w, "the status could not be encoded", http.StatusInternalServerError)
		return
	}
	respondBytes(w, f.contentType(false), int(status.Code), doc)
}

func respondJSON(w http.ResponseWriter, contentType string, value any) {
	doc, err := json.Marshal(value)
	if err != nil {
		RespondError(w, err)
		return
	}
	respondBytes(w, contentType, http.StatusOK, doc)
}

func respondBytes(w http.ResponseWriter, contentType string, code int, doc []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, _ = w.Write(doc) // the client has gone, and cannot be told
}
