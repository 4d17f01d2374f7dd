package podapi

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	hubDomain   = "docker.io"
	hubOldName  = "index.docker.io"
	hubLibrary  = "library/"
	maxRepoPath = 255
)

// The grammar of image references that container registries share:
// [domain[:port]/]path[:tag][@algorithm:hex].
var (
	imageReference = regexp.MustCompile(`^(?:(?P<domain>` +
		`(?:[[:alnum:]](?:[[:alnum:]-]*[[:alnum:]])?(?:\.[[:alnum:]](?:[[:alnum:]-]*[[:alnum:]])?)*|\[[[:xdigit:]:]+\])` +
		`(?::[0-9]+)?)/)?` +
		`(?P<path>[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)` +
		`(?::(?P<tag>\w[\w.-]{0,127}))?` +
		`(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[[:xdigit:]]{32,}))?$`)
	imageIdentifier = regexp.MustCompile(`^[a-f0-9]{64}$`)
	imageDigest     = regexp.MustCompile(`^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$`)
)

// pullPolicy is the default for an image: Always for the tag "latest" or no tag, since such a name
// moves. A reference that does not parse counts as fixed.
func pullPolicy(image string) corev1.PullPolicy {
	tag, digest, ok := parseImage(image)
	if ok && (tag == "latest" || tag == "" && digest == "") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// parseImage parses a reference like a node, short names of Docker Hub included.
func parseImage(image string) (tag, digest string, ok bool) {
	if imageIdentifier.MatchString(image) {
		return "", "", false
	}
	domain, rest := splitImageDomain(image)
	if path, _, _ := strings.Cut(rest, ":"); strings.ToLower(path) != path {
		return "", "", false
	}
	parts := imageReference.FindStringSubmatch(domain + "/" + rest)
	if parts == nil || len(parts[imageReference.SubexpIndex("path")]) > maxRepoPath {
		return "", "", false
	}
	tag = parts[imageReference.SubexpIndex("tag")]
	digest = parts[imageReference.SubexpIndex("digest")]
	return tag, digest, digest == "" || imageDigest.MatchString(digest)
}

// splitImageDomain decides whether the text before the first slash is a registry or a user of
// Docker Hub.
func splitImageDomain(image string) (domain, rest string) {
	first, after, ok := strings.Cut(image, "/")
	switch {
	case !ok:
		return hubDomain, hubLibrary + image
	case first == hubOldName:
		domain, rest = hubDomain, after
	case first == "localhost", strings.ContainsAny(first, ".:"), strings.ToLower(first) != first:
		domain, rest = first, after
	default:
		domain, rest = hubDomain, image
	}
	if domain == hubDomain && !strings.Contains(rest, "/") {
		rest = hubLibrary + rest
	}
	return domain, rest
}
