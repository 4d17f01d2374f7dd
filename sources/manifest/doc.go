// Package manifest turns the bytes of pod manifests, from files and URLs, into the pods of a node, by the rules of
// the kubelet 1.36 for its static pods.
package manifest
