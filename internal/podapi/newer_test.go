package podapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/internal/podapi"
)

// since is a fragment with the fields that are refused from a release on; before it, and with no
// release, the fragment is accepted.
type since struct {
	name     string
	where    string
	fragment string
	release  podapi.Release
	fields   string
}

// newerRules go beyond the recorded outcomes of package manifest, from the +k8s: tags of k8s.io/api
// 0.38 and the handwritten rules of 1.37.
var newerRules = []since{
	{"mode in range", inVolume, `emptyDir: {mode: 01777}`, 0, ""},
	{"mode below", inVolume, `emptyDir: {mode: -1}`, podapi.R137, "V.emptyDir.mode V0"},
	{"mode of another type", inVolume, `emptyDir: {mode: "0750"}`, podapi.R137, "V.emptyDir.mode V0"},
	{"mode null", inVolume, `emptyDir: {mode: null}`, 0, ""},
	{"users", inVolume, `projected: {defaultUser: 2147483647, sources: [{downwardAPI: {items: [{path: a, user: 0, fieldRef: {fieldPath: metadata.name}}]}}]}`, 0, ""},
	{"default user", inVolume, `secret: {secretName: s, defaultUser: -1}`, podapi.R137, "V.secret.defaultUser V0"},
	{"user of an item", inVolume, `configMap: {name: s, items: [{key: k, path: k, user: 4294967295}]}`, podapi.R137, "V.configMap.items[0].user V0"},
	{"user of a projected item", inVolume, `projected: {sources: [{secret: {name: s, items: [{key: k, path: k, user: -1}]}}]}`, podapi.R137, "V.projected.sources[0].secret.items[0].user V0"},
	{"user of a bundle", inVolume, `projected: {sources: [{clusterTrustBundle: {name: b, path: p, user: -1}}]}`, podapi.R137, "V.projected.sources[0].clusterTrustBundle.user V0"},
	{"bind option twice", inContainer, `volumeMounts: [{name: v, mountPath: /v, bindMountOptions: [noexec, noexec]}]`, podapi.R137, "C.volumeMounts[0].bindMountOptions[1]"},
	{"HTTP1 with any scheme", inContainer, `livenessProbe: {httpGet: {port: 80, protocol: HTTP1, scheme: HTTPS, host: h}}`, 0, ""},
	{"HTTP2 with a host", inContainer, `lifecycle: {preStop: {httpGet: {port: 80, protocol: HTTP2, host: h}}}`, podapi.R137, "C.lifecycle.preStop.httpGet.host"},
	{"only the first handler is looked at", inContainer, `livenessProbe: {exec: {command: [a]}, grpc: {port: 1, mode: tls}}`, podapi.R136, "C.livenessProbe.grpc"},
	{"eleven responders", inSpec, `evictionResponders: [` + responders(11) + `]`, podapi.R138, "spec.evictionResponders"},
	{"ten responders", inSpec, `evictionResponders: [` + responders(10) + `]`, 0, ""},
	{"a responder twice", inSpec, `evictionResponders: [{name: a.b/c, priority: 1000}, {name: a.b/c, priority: 1000}]`, podapi.R138, "spec.evictionResponders[1]"},
	{"a responder without a name", inSpec, `evictionResponders: [{priority: 100000}]`, podapi.R138, "spec.evictionResponders[0].name"},
	{"a responder without a domain", inSpec, `evictionResponders: [{name: c, priority: 1000}]`, podapi.R138, "spec.evictionResponders[0].name"},
	{"a responder of Kubernetes", inSpec, `evictionResponders: [{name: kubernetes.io/c, priority: -1}]`, podapi.R138, "spec.evictionResponders[0].name spec.evictionResponders[0].priority"},
	{"a domain like Kubernetes'", inSpec, `evictionResponders: [{name: mykubernetes.io/c, priority: 1000}]`, 0, ""},
	{"responders of another type", inSpec, `evictionResponders: a text`, podapi.R137, "spec.evictionResponders"},
	{"health of a volume twice", inPod, `status: {volumeHealth: [{name: v}, {name: v}]}`, podapi.R138, "status.volumeHealth[1]"},
	{"health of no volume, without a reason", inPod, `status: {volumeHealth: [{healthConditions: [{status: DataLoss}]}]}`, podapi.R138, "status.volumeHealth[0].name status.volumeHealth[0].healthConditions[0].reason"},
	{"health of the same condition", inPod, `status: {volumeHealth: [{name: v, healthConditions: [{status: DataLoss, reason: A}, {status: DataLoss, reason: A}, {status: DataLoss, reason: B}]}]}`, podapi.R138, "status.volumeHealth[0].healthConditions[1]"},
	{"profile from a registry", inContainer, `securityContext: {seccompProfile: {type: RuntimeDefault, oci: {ref: a.b/p@sha256:` + strings.Repeat("a", 64) + `, baseProfile: {type: Localhost, localhostProfile: ../x}}}}`, podapi.R138, "C.securityContext.seccompProfile.oci C.securityContext.seccompProfile.oci.baseProfile.localhostProfile"},
	{"written requests below the containers'", inSpec, `{resources: {requests: {cpu: 1}}, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}`, podapi.R136, "spec.resources.requests[cpu]"},
	{"workloadRef of any type, which no release has", inSpec, `workloadRef: [a, list]`, 0, ""},
}

func responders(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: a.b/c%d, priority: 10000}", i))
	}
	return strings.Join(all, ", ")
}

func TestNewerRules(t *testing.T) {
	for _, rule := range newerRules {
		t.Run(rule.name, func(t *testing.T) {
			for _, release := range podapi.Release(0).Each() {
				want := []string{}
				if rule.release != 0 && release >= rule.release {
					want = rulePaths(rule.fields)
				}
				require.Equal(t, want, faultsOf(t, release, rule.where, rule.fragment), release)
			}
		})
	}
}

// TestAmounts: numbers that the releases' own arithmetic takes in different ways. The kubelets of
// 1.36 and 1.37 crash at the two page sizes that overflow to 0.
func TestAmounts(t *testing.T) {
	all, none := []podapi.Release{podapi.R136, podapi.R137, podapi.R138}, []podapi.Release(nil)
	for limits, accepted := range map[string][]podapi.Release{
		`example.com/foo: "1.9999"`:                                      all,
		`example.com/foo: "9223372036854775"`:                            all,
		`example.com/foo: "9223372036854776"`:                            all[2:],
		`example.com/foo: "10000000000000000001"`:                        all[2:],
		`example.com/foo: "1e19"`:                                        all,
		`example.com/foo: "9223372036854775.5"`:                          none,
		`cpu: 1, hugepages-2Mi: 2097151500m`:                             all,
		`cpu: 1, hugepages-2Mi: 4Mi`:                                     all,
		`cpu: 1, hugepages-2Mi: "9223372036854775808"`:                   all[:2],
		`cpu: 1, hugepages-2Mi: "2e30"`:                                  all[:2],
		`cpu: 1, hugepages-2Mi: 3Mi`:                                     none,
		`cpu: 1, hugepages-1e30: "1e30"`:                                 none,
		`cpu: 1, hugepages-18446744073709551616: "18446744073709551616"`: none,
	} {
		for _, release := range all {
			faults := faultsOf(t, release, inContainer, "resources: {limits: {"+limits+"}}")
			require.Equal(t, slices.Contains(accepted, release), len(faults) == 0, "%s: %s: %s", release, limits, faults)
		}
	}
}

// rulePaths also knows V0, the first mount of the volume.
func rulePaths(fields string) []string {
	return rule{fields: strings.ReplaceAll(fields, "V0", "C.volumeMounts[0].name")}.paths()
}

// faultsOf decodes a pod as the release does, whatever the build knows of it.
func faultsOf(t *testing.T, release podapi.Release, where, fragment string) []string {
	base, part := podWith(t, where, `{}`), map[string]any{}
	if where == inVolume {
		base.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	}
	require.NoError(t, yaml.Unmarshal([]byte(fragment), &part))
	data, err := json.Marshal(base)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(data, &tree))
	into, spec := tree, tree["spec"].(map[string]any)
	switch where {
	case inSpec:
		into = spec
	case inContainer:
		into = spec["containers"].([]any)[0].(map[string]any)
	case inVolume:
		into = spec["volumes"].([]any)[0].(map[string]any)
	}
	for name, value := range part {
		into[name] = value
	}
	data, err = json.Marshal(tree)
	require.NoError(t, err)
	data, _ = release.CutNewer(data)
	var pod corev1.Pod
	newer := release.NewerOf(data)
	if err := json.Unmarshal(data, &pod); err != nil {
		t.Skipf("this build has another type for the field, and refuses it: %v", err)
	}
	release.Default(&pod)
	fields := []string{}
	for _, fault := range release.Validate(&pod, newer) {
		fields = append(fields, fault.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
