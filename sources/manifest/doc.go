// Package manifest turns the bytes of pod manifests, from files and URLs, into the static pods of a node, by the rules of
// the kubelet 1.36.3: what is left out is filled in, what the API would refuse is refused, and each pod gets its
// node, its suffix and its UID. It imports no part of Kubernetes beyond k8s.io/api and k8s.io/apimachinery.
//
//	decoder := manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
//	pods, rejected := decoder.Decode(path, data)
//	for _, err := range rejected {
//		log.Info("No pod", "error", err) // names file, document, line, item, pod and field
//	}
//
// What it guarantees:
//
//  1. The same bytes, path, source and node give the same pods with the same UIDs, after a restart
//     and on another machine. With [Decoder].UIDPath, that counts in place of the path. A pod in
//     which a default is written out, or which is put into another syntax, keeps its UID.
//  2. A pod that is given has passed the defaulting and the validation of a create request, with the feature gates of 1.36
//     at their defaults, and refers to no object of the API.
//  3. What is rejected costs only itself: one document of a stream, one item of a list.
//  4. An error never repeats a value of the manifest. It names the place, the field and the reason; the keys of a
//     map can be part of a field's path, and the pod's name is given once it has proved to be one.
//  5. No bytes make it panic. A manifest has less than 10 MiB, at most 16384 documents or items, and about a million values;
//     an object has at most 32768 structs, and in protobuf 3 MiB. What has more is refused before it is decoded, so that the
//     worst known manifest of 10 MiB takes less than 512 MiB for a moment (a test has the worst ones).
//
// With Decoder.LikeKubelet the reading of a manifest, as opposed to a pod, is the kubelet's as well: the first document
// counts and the others are not looked at, a file holds one Pod, a list from a URL is taken whole or not at all, and any
// metadata.uid is kept, even one that is a path. Three differences stay:
//
//   - The kubelet takes "apiVersion: __internal", a form without defaults that no one writes. It is rejected here.
//   - UIDs that are not in the manifest are hashes of other bytes than the kubelet's, which change with its version.
//   - More than 524288 structs in a document are refused. The other limits of guarantee 5 beyond the size in bytes do not
//     hold: like the kubelet, it takes gigabytes for some manifests of 10 MiB.
//
// The fields that k8s.io/api has and 1.36 has not are dropped, as the kubelet drops them. Two pods of one name are not
// this package's business: it sees one manifest at a time.
//
// YAML is read by go.yaml.in/yaml/v2, which the kubelet's rules come from: version 1.1 with its booleans and octal numbers,
// and the last of two equal keys. A brace at the beginning of a manifest begins JSON; one behind a
// marker (---) begins YAML, of which JSON is a part. Text that follows the object of a document is an
// error, and the object stands. Keys that are one in JSON, such as 1 and "1", are an error too; with
// LikeKubelet the text counts, where the kubelet takes either at random. A rejected document is read again by go.yaml.in/yaml/v3, which knows line numbers.
//
// The pairs under testdata are manifests and what the kubelet 1.36.3 made of them, from a file and from a URL.
package manifest
