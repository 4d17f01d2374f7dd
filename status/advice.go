package status

// advice tells a person how to mend a class of problems: docs/faq.md has the whole table. Classes
// that heal by themselves have none.
var advice = map[string]string{
	"short":             "If it lasts, look at proxies between client and server.",
	"unreachable":       "Start the server; check its address and DNS.",
	"tls":               "The cause names the certificate, the authority or the scheme: mend it.",
	"credentials":       "Run the credential plugin by hand; look at the token's file.",
	"silent":            "If it lasts, look at the network and the server's health.",
	"expired":           "If it is frequent, the client is too slow, or the server's watch cache too small.",
	"version_went_back": "The server was restored from a backup: restart its clients.",
	"throttled":         "Give the client a priority level; have fewer copies.",
	"server_error":      "Look at the server's log, and at its etcd.",
	"unauthorized":      "Renew the credentials.",
	"forbidden":         "Grant list and watch, or the right to read the file or socket.",
	"not_found":         "Install the CRD, or correct the name or the path.",
	"refused":           "The cause says what is wrong with the request: correct it.",
	"undecodable":       "Mend the object or the manifest that the cause names.",
	"unplaced":          "Give the proxy between client and servers sticky sessions.",
	"store_error":       "Mend the store of the program, or its disk.",
	"unknown":           "Read the cause.",
	"duplicate":         "Remove one of the two manifests that declare the pod.",
	"changing":          "Find the program that writes the file without end.",
	"checkpoint":        "Give the agent a folder of its own that it can write.",
	"may_be_old":        "Wait for the server to name a version, or see why it is cut off from etcd.",
	"not_ready":         "Wait for the kubelet to reach its API server.",
	"overdue":           "See why the required source cannot be read.",
	"drift":             "Verify again after the next relist; if it stays, a proxy loses events, or a program writes into shared objects.",
	"ended":             "Restart the program: the source has given up.",
}
