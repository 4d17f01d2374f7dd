package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// variedSet has 3, 10 and 50 pods, in each size a third of all pods. Applications are spread over
// the namespaces, so by key the ReplicaSets of one application are far from each other.
func variedSet(i int) replicaSet {
	const small, medium, large = 16, 5, 1 // the ReplicaSets of a turn
	turn, at := i/(3*small+10*medium+50*large), i%(3*small+10*medium+50*large)
	set := at / 3
	switch {
	case at >= 3*small+10*medium:
		set = small + medium
	case at >= 3*small:
		set = small + (at-3*small)/10
	}
	number := (small+medium+large)*turn + set
	return replicaSet{number: number, application: rand.New(rand.NewPCG(uint64(number), 43)).IntN(200), team: 3*turn + set%3}
}

// vary makes pod number i differ in more. It gets annotations of its own, and two of them change
// with its state. It has five managers and not three, and its ReplicaSet's own environment.
func (s replicaSet) vary(pod *corev1.Pod, i, state int) {
	random, now := rand.New(rand.NewPCG(uint64(i), 47)), changing(i, state)
	checked := metav1.NewTime(after(random).Add(time.Duration(state) * time.Minute))
	own := map[string]string{
		"autoscaling.example.com/recommendation": fmt.Sprintf("cpu=%dm,memory=%dMi", 50+now.IntN(900), 64+now.IntN(2000)),
		"cost.example.com/usd-per-hour":          fmt.Sprintf("0.%06d", now.IntN(1_000_000)),
		"k8s.v1.cni.cncf.io/network-status":      networkStatus(pod, random),
		"vault.example.com/lease":                "database/creds/" + s.app() + "/" + letters(random, 24),
	}
	if i%3 > 0 {
		own["backup.example.com/volume"] = "snap-" + hex(random, 17)
	}
	var annotations []string
	for key, value := range own {
		pod.Annotations[key] = value
		annotations = append(annotations, key)
	}
	slices.Sort(annotations)
	c := &pod.Spec.Containers[0]
	environment := s.random(53)
	for n := range c.Env {
		if c.Env[n].ValueFrom == nil {
			c.Env[n].Value += "/" + hex(environment, 12)
		}
	}
	variables := 1 + environment.IntN(8)
	for n := range variables {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("FEATURE_%02d", n), Value: letters(environment, 8+environment.IntN(24))})
	}
	gate := corev1.PodConditionType("target-health.elbv2.k8s.aws/k8s-" + s.app()[:8] + "-" + hex(s.random(59), 10))
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue, LastTransitionTime: checked})
	pod.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(controllersPart(variables))
	pod.ManagedFields = append(pod.ManagedFields,
		entry("load-balancer-controller", "status", checked, `{"f:status":{"f:conditions":{`+keyed("type", string(gate), set("lastProbeTime", "lastTransitionTime", "status", "type"))+`}}}`),
		entry("pod-annotator", "", checked, `{"f:metadata":{"f:annotations":`+set(annotations...)+`}}`))
}

// networkStatus is a network plugin's note of the interfaces of a pod.
func networkStatus(pod *corev1.Pod, random *rand.Rand) string {
	mac := hex(random, 8)
	return fmt.Sprintf(`[{"name":"k8s-pod-network","interface":"eth0","ips":["%s"],"mac":"0a:58:%s:%s:%s:%s","default":true,"dns":{}},`+
		`{"name":"%s/storage","interface":"net1","ips":["%s"],"mac":"0e:%[3]s:%[2]s:%[5]s:%[4]s:7f","dns":{}}]`,
		pod.Status.PodIP, mac[:2], mac[2:4], mac[4:6], mac[6:], pod.Namespace, address(random))
}
