package status

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// advice tells a person how to mend a class of problems: docs/reference/classes.md has all. Classes
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
	"stuck":             "The cause names the key: see where its call hangs, or why all fail.",
	"key_failing":       "See why the calls for the key in the cause fail.",
	"ended":             "Look at the error of Run, and restart the program: a copy is run once.",
}

// adviceFor is the advice for the problems of one class, with the causes of all problems, and the
// commands that carry it out.
func adviceFor(class string, causes []error) (lines, commands []string) {
	if class == "forbidden" || class == "unauthorized" {
		for _, cause := range causes {
			line, command := denied(cause)
			if line == "" || slices.Contains(lines, line) {
				continue
			}
			if lines = append(lines, line); command != "" {
				commands = append(commands, command)
			}
		}
	}
	if line := advice[class]; line != "" && len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines, commands
}

// deniedBy is the text in which an API server refuses a request for a resource.
var deniedBy = regexp.MustCompile(`User "([^"]+)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)" (?:at the cluster scope|in the namespace "([^"]+)")`)

// denied is the advice for one refusal, and its command; empty if the cause is none, or does not
// tell.
func denied(cause error) (line, command string) {
	if apierrors.IsUnexpectedServerError(cause) && (apierrors.IsForbidden(cause) || apierrors.IsUnauthorized(cause)) {
		return "The refusal has no Status, so it is probably that of a proxy before the API server: look there.", ""
	}
	said := deniedBy.FindStringSubmatch(cause.Error())
	if said == nil {
		return "", ""
	}
	if said[1] == "system:anonymous" {
		return "Give the client credentials: the server took it for system:anonymous.", ""
	}
	g := grant{subject: "the user " + said[1], flag: "--user=" + said[1], verbs: []string{said[2]}, resource: said[3], namespace: said[5]}
	if account, ok := strings.CutPrefix(said[1], "system:serviceaccount:"); ok {
		g.flag = "--serviceaccount=" + account
		g.subject = "the service account " + strings.Replace(account, ":", "/", 1)
	}
	if said[2] == "list" || said[2] == "watch" { // a copy needs both
		g.verbs = []string{"list", "watch"}
	}
	if said[4] != "" {
		g.resource += "." + said[4]
	}
	return g.line(), g.command()
}

// grant is a right that a copy lacks.
type grant struct {
	subject   string // for people
	flag      string // for kubectl
	verbs     []string
	resource  string // with its group
	namespace string // empty: the whole cluster
}

func (g grant) line() string {
	scope := "in the whole cluster"
	if g.namespace != "" {
		scope = "in the namespace " + g.namespace
	}
	return fmt.Sprintf("Grant %s on %s %s to %s.", strings.Join(g.verbs, " and "), g.resource, scope, g.subject)
}

// command makes a role and binds it. A role that is there already has the same rights, since its
// name says them.
func (g grant) command() string {
	kind, scope := "clusterrole", ""
	if g.namespace != "" {
		kind, scope = "role", " -n "+quoted(g.namespace)
	}
	role := nameOf(strings.Join(g.verbs, "-") + "-" + g.resource)
	_, subject, _ := strings.Cut(g.flag, "=")
	return fmt.Sprintf("kubectl%[1]s create %[2]s %[3]s --verb=%[4]s --resource=%[5]s; kubectl%[1]s create %[2]sbinding %[6]s --%[2]s=%[3]s %[7]s",
		scope, kind, role, strings.Join(g.verbs, ","), quoted(g.resource), nameOf(role+"-"+subject), quoted(g.flag))
}

var (
	notInNames = regexp.MustCompile(`[^a-z0-9.]+`)
	notPlain   = regexp.MustCompile(`[^A-Za-z0-9_./:=@-]`)
)

// nameOf makes the name of an object from a text.
func nameOf(text string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-.")
}

// quoted is one word for a shell. The texts come from a server, which may be hostile.
func quoted(word string) string {
	if word = printable(word); !notPlain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
