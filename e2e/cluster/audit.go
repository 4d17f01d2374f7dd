package cluster

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Audit is what an API server writes down of the lists and watches that it answers.
type Audit struct {
	t            testing.TB
	policy, path string
}

// AuditedRequest is one list or watch.
type AuditedRequest struct {
	Verb, Resource, User, Agent string
	Query                       url.Values
	Code                        int
	At                          time.Time
}

// IsCollected reports whether the request made the server send a whole collection: a list without
// a limit, or a watch that begins with all objects. The lists of metadata by which a copy of ours
// is compared do not count: while readers wait for a proof, each asks for a version that is known.
func (r AuditedRequest) IsCollected() bool {
	if r.Verb == "watch" {
		return r.Query.Get("sendInitialEvents") == "true" || r.Query.Get("resourceVersion") == "" || r.Query.Get("resourceVersion") == "0"
	}
	compares := r.Query.Get("resourceVersionMatch") != "" && r.Query.Get("resourceVersion") != "0"
	// A probe asks for one object, and after an interruption for a page.
	limit := r.Query.Get("limit")
	return !compares && limit != "1" && limit != "300" && r.Query.Get("continue") == ""
}

const auditPolicy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],
"rules":[{"level":"Metadata","verbs":["list","watch"]},{"level":"None"}]}`

// NewAudit prepares an audit for the server that is started with its flags.
func NewAudit(t testing.TB) *Audit {
	t.Helper()
	folder := t.TempDir()
	a := &Audit{t: t, policy: filepath.Join(folder, "policy"), path: filepath.Join(folder, "log")}
	require.NoError(t, os.WriteFile(a.policy, []byte(auditPolicy), 0o600))
	return a
}

// Flags are those of the API server.
func (a *Audit) Flags() []string {
	return []string{"--audit-policy-file=" + a.policy, "--audit-log-path=" + a.path}
}

// Requests are those that the server has begun to answer, in the order of their answers.
func (a *Audit) Requests() (all []AuditedRequest) {
	a.t.Helper()
	file, err := os.Open(a.path)
	require.NoError(a.t, err)
	defer file.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			AuditID, Verb, RequestURI, UserAgent string
			User                                 struct{ Username string }
			ObjectRef                            struct{ Resource string }
			ResponseStatus                       struct{ Code int }
			RequestReceivedTimestamp             time.Time
		}
		// The last line may still be written.
		if json.Unmarshal(lines.Bytes(), &e) != nil || seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		asked, err := url.Parse(e.RequestURI)
		require.NoError(a.t, err)
		all = append(all, AuditedRequest{
			Verb: e.Verb, Resource: e.ObjectRef.Resource, User: e.User.Username, Agent: e.UserAgent,
			Query: asked.Query(), Code: e.ResponseStatus.Code, At: e.RequestReceivedTimestamp,
		})
	}
	require.NoError(a.t, lines.Err())
	return all
}

// Collected are the requests of a user that made the server send a whole collection.
func (a *Audit) Collected(user, resource string) (all []AuditedRequest) {
	a.t.Helper()
	for _, r := range a.Requests() {
		if r.User == user && r.Resource == resource && r.IsCollected() {
			all = append(all, r)
		}
	}
	return all
}
