package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// invalid begins the text of a rejection that lists what validation found.
const invalid = "invalid pod: ["

// invalidFields are the paths of the fields that a rejection is about. Its text cannot be taken
// apart: it quotes keys and values that look like anything. So the manifest is validated once more,
// and the faults must be those of the text.
func invalidFields(source string, data []byte, rejected string) (paths []string) {
	if !strings.HasPrefix(rejected, invalid) {
		return nil
	}
	json, err := yaml.ToJSON(data)
	if err != nil {
		return nil
	}
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), json)
	if err != nil {
		return nil
	}
	var pods []core.Pod
	switch object := object.(type) {
	case *core.Pod:
		pods = []core.Pod{*object}
	case *core.PodList:
		pods = object.Items
	}
	for i := range pods {
		pod := &pods[i]
		asStatic(source, pod)
		faults := validation.ValidatePodCreate(pod, podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil))
		if len(faults) == 0 {
			continue
		}
		// Of the text, which has a space or a bracket behind each fault.
		rest := len(rejected) - len(invalid)
		for _, fault := range faults {
			if rest -= len(fault.Error()) + 1; !strings.Contains(rejected, fault.Error()) {
				return nil
			}
			paths = append(paths, fault.Field)
		}
		if rest != 0 {
			return nil
		}
		return paths
	}
	return nil
}

// asStatic sets what the kubelet sets before it validates.
func asStatic(source string, pod *core.Pod) {
	if pod.UID == "" {
		pod.UID = "uid"
	}
	pod.Name += "-" + node
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	pod.Spec.NodeName = node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["kubernetes.io/config.hash"] = string(pod.UID)
	if source != "http" {
		helper.AddOrUpdateTolerationInPod(pod, &core.Toleration{Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute})
	}
	pod.Status.Phase = core.PodPending
}
