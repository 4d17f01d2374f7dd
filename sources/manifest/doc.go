// Package manifest turns pod manifests, from files and URLs, into the static pods of a node, by the
// rules of the kubelet of a [Release]. It fills in defaults, refuses pods that the API would
// refuse, and gives each pod its node, its suffix and its UID. Of Kubernetes it imports only
// k8s.io/api and k8s.io/apimachinery.
//
//	decoder := manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
//	pods, rejected := decoder.Decode(path, data)
//	for _, err := range rejected {
//		log.Info("No pod", "problem", err) // names file, document, line, item, pod and field
//	}
//
// It guarantees:
//
//  1. The same bytes, path, source, node and release give the same pods with the same UIDs, after a
//     restart and on another machine. [Decoder].UIDPath, if it is set, counts in place of the path.
//     A pod keeps its UID if a default is written out, or if it is written in another syntax.
//  2. A returned pod has passed the defaulting and the validation of a create request, with the
//     feature gates of its release at their defaults. It refers to no object of the API.
//  3. A rejected part costs only itself: one document of a stream, or one item of a list.
//  4. An error never quotes a value of the manifest. It names the place, the field and the reason.
//     A field's path may have keys of a map. The pod's name is in the error only if it is valid.
//  5. No bytes make it panic. A manifest has less than 10 MiB, at most 16384 documents or items,
//     and about a million values. An object has at most 32768 structs, and in protobuf 3 MiB.
//     Larger ones are refused before they are decoded. So the worst known manifest of 10 MiB takes
//     less than 512 MiB for a moment (a test has the worst ones).
//
// With [Decoder].LikeKubelet the reading of a manifest is the kubelet's as well. Only the first
// document counts, and a file holds one Pod. A list from a URL is taken as a whole or not at all.
// Any metadata.uid is kept, even a path. Three differences remain:
//
//   - The kubelet takes "apiVersion: __internal", a form without defaults that no one writes. Here
//     it is rejected.
//   - A UID that is not in the manifest is a hash of other bytes than the kubelet's, which change
//     with its version.
//   - More than 524288 structs in a document are refused. The other limits of guarantee 5, except
//     the size in bytes, do not apply: like the kubelet, it takes gigabytes for some manifests of
//     10 MiB.
//
// Fields that are misspelt, or that the release does not have, are dropped, as the kubelet drops
// them. Fields of the release that the k8s.io/api of the build does not have are dropped too, such
// as spec.schedulingGroup with 0.35. [Decoder].Warn is told of each. The package sees one manifest
// at a time, so it does not compare the names of pods.
//
// go.yaml.in/yaml/v2 reads YAML, as in the kubelet: version 1.1 with its booleans and octal
// numbers, and the last of two equal keys. A brace at the beginning of a manifest begins JSON. A
// brace behind a marker (---) begins YAML, of which JSON is a part. Text after the object of a
// document is an error, and the object is kept. Two keys that are equal in JSON, such as 1 and "1",
// are an error too. With LikeKubelet the text key counts; the kubelet takes either at random. A
// rejected document is parsed again by go.yaml.in/yaml/v3, which knows line numbers.
//
// The pairs under testdata are manifests and what the kubelets 1.36.3, 1.37.2 and 1.38.0-beta.0
// made of them, from a file and from a URL.
package manifest
