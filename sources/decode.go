package sources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/sources/manifest"
)

// decoder is what a source reads with: what its options say, or the manifests of static pods.
func decoder(o sourceOptions, node, source string) Decode {
	if o.decode != nil {
		return named(o.decode)
	}
	static := manifest.Decoder{Node: node, Source: source}
	return func(path string, data []byte) ([]*corev1.Pod, []error) {
		pods, rejected := static.Decode(path, data)
		return pods, asErrors(rejected)
	}
}

func asErrors(rejected []*manifest.Error) (all []error) {
	for _, r := range rejected {
		all = append(all, r)
	}
	return all
}

// named refuses pods without a name, which no store can hold.
func named(decode Decode) Decode {
	return func(path string, data []byte) (pods []*corev1.Pod, rejected []error) {
		all, rejected := decode(path, data)
		for i, pod := range all {
			if pod == nil || pod.Name == "" {
				rejected = append(rejected, fmt.Errorf("%s, item %d: the pod has no name", path, i+1))
				continue
			}
			pods = append(pods, pod)
		}
		return pods, rejected
	}
}

// decodePodList reads a PodList as an API server, or a kubelet, answers it.
func decodePodList(path string, data []byte) (pods []*corev1.Pod, rejected []error) {
	var list corev1.PodList
	if err := json.Unmarshal(data, &list); err != nil || list.Kind != "PodList" {
		return nil, []error{fmt.Errorf("%s: the answer is not a PodList in JSON: is this a kubelet's /pods?", path)}
	}
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}
