package relay

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/tributary-go/tributary/internal/identity"
)

// Read is a read that the relay has answered without the upstream, for an audit log: the upstream's
// own log lacks it. It has no token, no selector and no object.
type Read struct {
	Time   time.Time `json:"time"`
	Client string    `json:"client"` // its address
	// User is the client's name. It is empty if the client is unknown, and with [Open].
	User      string `json:"user,omitempty"`
	Verb      string `json:"verb"` // get, list or watch
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Decision is allow, or forbid if the access control has refused the read.
	Decision string `json:"decision"`
	Code     int    `json:"code"` // of the answer
	// Source is cache if the answer has come out of one, and none otherwise.
	Source string `json:"source"`
}

// WithAudit calls a function for each read that the relay answers without the upstream, as soon as
// the answer begins. It must not block for long. The default is no audit.
func WithAudit(log func(Read)) Option { return func(o *options) { o.audit = log } }

// auditor is the writer of an answer that is to be audited.
type auditor struct {
	http.ResponseWriter
	log      func(Read)
	read     Read
	user     *identity.User
	admitted bool
	over     bool // it is told, or the upstream answers
}

type auditorKey struct{}

// audited tells of the reads that next answers.
func (r *Relay) audited(next http.Handler) http.Handler {
	if r.audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := &auditor{ResponseWriter: w, log: r.audit, read: readFor(req)}
		ctx, user := identity.Expect(context.WithValue(req.Context(), auditorKey{}, a))
		a.user = user
		next.ServeHTTP(a, req.WithContext(ctx))
	})
}

func readFor(req *http.Request) Read {
	asked, _ := readOf(req)
	t := asked.target
	read := Read{
		Time: time.Now().UTC(), Client: req.RemoteAddr, Verb: "list", Group: t.Resource.Group, Version: t.Resource.Version,
		Resource: t.Resource.Resource, Namespace: t.Namespace, Name: t.Name,
	}
	switch {
	case t.Name != "":
		read.Verb = "get"
	case asked.options.Watch:
		read.Verb = "watch"
	}
	return read
}

// auditorOf is nil without an audit.
func auditorOf(ctx context.Context) *auditor {
	a, _ := ctx.Value(auditorKey{}).(*auditor)
	return a
}

// admit notes that the access control has let a request in.
func (a *auditor) admit() {
	if a != nil {
		a.admitted = true
	}
}

// leave notes that the upstream answers, whose log has the request.
func (a *auditor) leave() {
	if a != nil {
		a.over = true
	}
}

func (a *auditor) tell(code int) {
	if a.over {
		return
	}
	a.over, a.read.Code, a.read.User = true, code, a.user.Name
	a.read.Decision, a.read.Source = "forbid", "none"
	if a.admitted {
		a.read.Decision = "allow"
		if code < http.StatusBadRequest {
			a.read.Source = "cache"
		}
	}
	a.log(a.read)
}

// WriteHeader implements [http.ResponseWriter].
func (a *auditor) WriteHeader(code int) {
	a.tell(code)
	a.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (a *auditor) Write(p []byte) (int, error) {
	a.tell(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// Hijack is for web sockets, whose answer is written to the connection.
func (a *auditor) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.tell(http.StatusSwitchingProtocols)
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap is for [http.ResponseController].
func (a *auditor) Unwrap() http.ResponseWriter { return a.ResponseWriter }
