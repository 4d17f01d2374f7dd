package podapi

import (
	"fmt"
	"slices"
	"strings"
)

// Release is a minor release of Kubernetes, in order. The zero value is no release: it stands for
// the mildest of them, see [Release.Each].
type Release int

// The releases that are followed.
const (
	R136 Release = iota + 1
	R137
	R138

	never // of a field that no followed release has
)

var releases = []Release{R136, R137, R138}

// String is the release as in "1.37", and empty for the zero value.
func (r Release) String() string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf("1.%d", 35+int(r))
}

// ParseRelease takes a release by its name, or by the version of a program of it, such as
// "v1.37.2".
func ParseRelease(version string) (Release, error) {
	var names []string
	for _, r := range releases {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), r.String())
		if ok && (rest == "" || strings.ContainsAny(rest[:1], ".-+")) {
			return r, nil
		}
		names = append(names, r.String())
	}
	return 0, fmt.Errorf("%q is no version of a kubelet that is followed: %s", version, strings.Join(names, ", "))
}

// Each is the release itself. Of the zero value it is all releases: the first that accepts a pod
// decides what it is, so that a pod that any of them accepts is accepted, as that release has it.
func (r Release) Each() []Release {
	if r == 0 {
		return slices.Clone(releases)
	}
	return []Release{r}
}
