package status

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/tributary-go/tributary/informer"
	reports "github.com/tributary-go/tributary/metrics"
)

// verifier is an informer or a lease.
type verifier interface {
	Verify(ctx context.Context) (informer.Drift, error)
}

// setVerifier is a set.
type setVerifier interface {
	Verify(ctx context.Context, name string) (informer.Drift, error)
}

func canVerify(r reports.Reporter) bool {
	switch r.(type) {
	case verifier, setVerifier:
		return true
	}
	return false
}

// serveVerify answers a POST: it compares the copy of a name with its server.
func (h *Handler) serveVerify(w http.ResponseWriter, r *http.Request) {
	if err := h.origins.Check(r); err != nil {
		http.Error(w, "a verification is asked for by this page, and by no page from elsewhere", http.StatusForbidden)
		return
	}
	name := r.URL.Query().Get("verify")
	verify := h.verification(name)
	if verify == nil {
		http.Error(w, fmt.Sprintf("no copy of the name %q can be verified", printable(name)), http.StatusNotFound)
		return
	}
	if h.verifying.Swap(true) {
		http.Error(w, "another verification is under way: ask again when it is done", http.StatusConflict)
		return
	}
	defer h.verifying.Store(false)
	drift, err := verify(r.Context())
	w.Header().Set("Content-Type", asText+"; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintln(w, printable(err.Error()))
		return
	}
	_, _ = w.Write(driftText(name, drift))
}

// verification is the Verify of the copy of a name, or nil.
func (h *Handler) verification(name string) func(context.Context) (informer.Drift, error) {
	for _, one := range h.all() {
		switch r := one.reporter.(type) {
		case verifier:
			if one.name == name {
				return r.Verify
			}
		case setVerifier:
			for sample := range one.reporter.Samples(one.name) {
				if sample.Labels[0] == name {
					return func(ctx context.Context) (informer.Drift, error) { return r.Verify(ctx, name) }
				}
			}
		}
	}
	return nil
}

// driftText names each object that differs, and no value.
func driftText(name string, d informer.Drift) []byte {
	var out bytes.Buffer
	if d.Count == 0 {
		fmt.Fprintf(&out, "%s is as the server has it: %d objects at version %s.\n", printable(name), d.Objects, d.ResourceVersion)
		return out.Bytes()
	}
	fmt.Fprintf(&out, "%s: %d of %d objects differ from the server's.\n", printable(name), d.Count, d.Objects)
	for _, difference := range d.Differences {
		fmt.Fprintf(&out, "  %s: ", printable(difference.Key))
		switch {
		case difference.Store == "":
			fmt.Fprintf(&out, "the copy lacks it; the server has version %s\n", difference.Server)
		case difference.Server == "":
			fmt.Fprintf(&out, "the server has it no more; the copy has version %s\n", difference.Store)
		case difference.Path != "":
			fmt.Fprintf(&out, "%s differs under version %s\n", printable(difference.Path), difference.Store)
		default:
			fmt.Fprintf(&out, "the server has version %s, the copy %s\n", difference.Server, difference.Store)
		}
	}
	return out.Bytes()
}
