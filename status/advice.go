package status

import (
	"fmt"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// advice tells a person how to mend a class of problems: docs/faq.md has the whole table. Classes
// that heal by themselves have none.
var advice = map[string]string{
	"short":        "If it lasts, look at proxies between client and server.",
	"disconnected": "If it comes at an even pace, leave rest.Config.Timeout zero, and look at proxies with a time limit.",
	"unreachable":  "Start the server; check its address and DNS.",
	"tls": "The cause names the certificate, the authority or the scheme: mend it. " +
		"client-go from 0.36 on reads a replaced CAFile within 5 minutes; an older one needs a restart.",
	"credentials":       "Run the credential plugin by hand; look at the token's file.",
	"silent":            "If it lasts, look at the network and the server's health.",
	"expired":           "If it is frequent, the client is too slow, or the server's watch cache too small.",
	"version_went_back": "The server was restored from a backup: restart its clients.",
	"throttled":         "Give the client a priority level; have fewer copies.",
	"client_throttled":  "Raise QPS and Burst in rest.Config, or give the program's own requests another client.",
	"server_error":      "Look at the server's log, and at its etcd.",
	"unauthorized":      "Renew the credentials.",
	"forbidden":         "Grant list and watch, or the right to read the file or socket.",
	"not_found":         "Install the CRD, or correct the name or the path.",
	"wrong_answer":      "Check the URL in the cause, the proxies before it, and the Go type that reads it.",
	"incomplete":        "Give the source WithoutWatchList, if the server or a proxy does not know watch lists.",
	"refused":           "The cause says what is wrong with the request: correct it.",
	"undecodable":       "Mend the object or the manifest that the cause names.",
	"unplaced":          "Give the proxy between client and servers sticky sessions.",
	"store_error":       "Mend the store of the program, or its disk.",
	"unknown":           "Read the cause.",
	"duplicate":         "Remove one of the two manifests that declare the pod.",
	"changing":          "Find the program that writes the file without end.",
	"checkpoint":        "Give the agent a folder of its own that it can write.",
	"not_run":           "Call Run, and keep the error that it returns.",
	"not_synced":        "Wait for the first list; the cause says what keeps it back.",
	"stale":             "See why no probe is answered, or why the watch is behind: slow link, proxy, or a server cut off from etcd.",
	"another_history":   "The address leads to another cluster, or to a restored one: check it. The copy is listed again.",
	"shrunk":            "Nothing, if objects were deleted; else look at caches and proxies before the server.",
	"may_be_old":        "Wait for the server to name a version, or see why it is cut off from etcd.",
	"not_ready":         "Wait for the kubelet to reach its API server.",
	"overdue":           "See why the required source cannot be read.",
	"drift":             "The copy is listed again; if it comes back, a proxy loses events, or a program writes into shared objects.",
	"ended":             "Look at the error of Run, and restart the program: a copy is run once.",
}

// adviceFor is the advice for the problems of one class, with the causes of all problems.
func adviceFor(class string, causes []error) (lines []string) {
	if class == "forbidden" || class == "unauthorized" {
		for _, cause := range causes {
			if line := denied(cause); line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if line := advice[class]; line != "" && len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// deniedBy is the text in which an API server refuses a request for a resource.
var deniedBy = regexp.MustCompile(`User "([^"]+)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)" (at the cluster scope|in the namespace "([^"]+)")`)

// denied is the advice for one refusal; empty if the cause is none, or does not tell.
func denied(cause error) string {
	if apierrors.IsUnexpectedServerError(cause) && (apierrors.IsForbidden(cause) || apierrors.IsUnauthorized(cause)) {
		return "The refusal has no Status, so it is probably that of a proxy before the API server: look there."
	}
	said := deniedBy.FindStringSubmatch(cause.Error())
	if said == nil {
		return ""
	}
	user, verbs, resource, group, scope := said[1], fmt.Sprintf("%q", said[2]), said[3], said[4], said[5]
	if user == "system:anonymous" {
		return "Give the client credentials: the server took it for system:anonymous."
	}
	if said[2] == "list" || said[2] == "watch" { // a copy needs both
		verbs = `"list" and "watch"`
	}
	if group != "" {
		resource += "." + group
	}
	if said[6] != "" {
		scope = "in the namespace " + said[6]
	}
	return fmt.Sprintf("Grant %s on %s %s to %s.", verbs, resource, scope, user)
}
