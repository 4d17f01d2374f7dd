package manifest

import "github.com/tributary-go/tributary/internal/podapi"

// Release is a minor release of Kubernetes whose kubelet a [Decoder] follows. The zero value is
// the mildest of the releases that are followed: a pod is accepted if one of them accepts it, and
// is what the first of them makes of it.
type Release struct{ is podapi.Release }

// ParseRelease takes a release by its name, such as "1.37", or by the version of a kubelet, such as
// "v1.37.2", which a Node has in status.nodeInfo.kubeletVersion. Releases are 1.36, 1.37 and 1.38.
func ParseRelease(version string) (Release, error) {
	is, err := podapi.ParseRelease(version)
	return Release{is}, err
}

// String is the name of the release, and empty for the zero value.
func (r Release) String() string { return r.is.String() }
