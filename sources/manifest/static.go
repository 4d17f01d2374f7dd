package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/internal/podapi"
)

var errNoName = errors.New("a static pod needs a name, and a generateName is none")

const maxUID = 253

// namesFolder reports whether a node can make a folder of the UID's name, and none of another name.
// Any other text is a UID, as for the kubelet.
func namesFolder(uid types.UID) bool {
	elsewhere := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	return len(uid) <= maxUID && uid != "." && uid != ".." && !strings.ContainsFunc(string(uid), elsewhere)
}

// admit makes a decoded pod a pod of this node by the rules of a release, or returns why it cannot
// be one.
func (d Decoder) admit(path string, release podapi.Release, from *decoded) error {
	pod, newer := from.pod, from.newerOf(release)
	if d.Warn != nil {
		from.unknown = append(from.unknown, release.DropNewer(pod)...)
	}
	release.Default(pod)
	if pod.Name == "" {
		return errNoName
	}
	if !d.LikeKubelet && !namesFolder(pod.UID) {
		return fieldFaults{field.Invalid(field.NewPath("metadata", "uid"), nil,
			"a node names a folder by it: at most 253 bytes without '/', '\\' and control characters, and not '.' or '..'")}
	}
	if pod.UID == "" {
		uid, err := d.uid(path, pod)
		if err != nil {
			return err
		}
		pod.UID = uid
	}
	d.bind(pod)
	if faults := release.Validate(pod, newer); len(faults) > 0 {
		return fieldFaults(faults)
	}
	if kind := podapi.APIReference(pod); kind != "" {
		return fmt.Errorf("a static pod cannot refer to an object of the API, and this one refers to a %s", kind)
	}
	return nil
}

// bind adds the fields that a pod has from its node. A pod of a file tolerates every taint of the
// node; a pod of a URL does not, though both are static.
func (d Decoder) bind(pod *corev1.Pod) {
	pod.Name = d.nameOf(pod.Name)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = d.Node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[HashAnnotation] = string(pod.UID)
	pod.Status.Phase = corev1.PodPending
	if d.Source == SourceFile {
		pod.Spec.Tolerations = tolerateEviction(pod.Spec.Tolerations)
	}
}

// nameOf is the name in the cluster of a pod of the node.
func (d Decoder) nameOf(name string) string { return name + "-" + strings.ToLower(d.Node) }

// keyOf is the key of the pod that a manifest with this name declares; empty for a bad name.
func (d Decoder) keyOf(namespace, name string) string {
	if name == "" {
		return ""
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Name: d.nameOf(name)}}
	return podKey(pod)
}

// tolerateEviction adds a toleration of all taints that evict. It replaces tolerations that differ
// from it only by a time.
func tolerateEviction(tolerations []corev1.Toleration) []corev1.Toleration {
	forever := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	found := false
	for i := range tolerations {
		if tolerations[i].MatchToleration(&forever) {
			tolerations[i], found = forever, true
		}
	}
	if !found {
		tolerations = append(tolerations, forever)
	}
	return tolerations
}

// uid derives a UID from the pod, its node, and UIDPath or its path. While the pod with all
// defaults is the same, the UID is the same after a restart, on every machine and with every
// version of Go. It is the hash of a JSON text with sorted keys. Nulls are left out, because
// releases of the API differ in writing them.
func (d Decoder) uid(path string, pod *corev1.Pod) (types.UID, error) {
	data, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("pod cannot be hashed for its UID: %w", err)
	}
	canonical, err := canonicalJSON(data)
	if err != nil {
		return "", fmt.Errorf("pod cannot be hashed for its UID: %w", err)
	}
	if d.UIDPath != "" && !d.LikeKubelet {
		path = d.UIDPath
	}
	hash := sha256.New()
	for _, part := range []string{d.Node, d.Source, path, string(canonical)} {
		fmt.Fprintf(hash, "%d:%s,", len(part), part) // the lengths keep neighbours apart
	}
	return types.UID(hex.EncodeToString(hash.Sum(nil)[:16])), nil
}

func canonicalJSON(data []byte) ([]byte, error) {
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(withoutNulls(tree))
}

func withoutNulls(node any) any {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if value == nil {
				delete(node, key)
				continue
			}
			node[key] = withoutNulls(value)
		}
	case []any:
		for i := range node {
			node[i] = withoutNulls(node[i])
		}
	}
	return node
}

// podKey names a pod in an error. It is empty for a bad name, which may be anything.
func podKey(pod *corev1.Pod) string {
	if pod == nil || len(validation.NameIsDNSSubdomain(pod.Name, false)) > 0 ||
		len(validation.ValidateNamespaceName(pod.Namespace, false)) > 0 {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}
