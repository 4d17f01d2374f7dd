package world

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestKinds are further kinds, for the benchmark of objects at rest: texts that have no sibling,
// and the pods of other projects' measurements.
var RestKinds = []Kind{
	{Name: "ConfigMap of text", Version: core, Resource: "configmaps", Object: func(i, version, state int) Object {
		return &corev1.ConfigMap{ObjectMeta: textMeta(i, version, "config"), Data: map[string]string{"settings.yaml": string(text(i, state, 20_000))}}
	}},
	{Name: "Secret of text", Version: core, Resource: "secrets", Object: func(i, version, state int) Object {
		return secretOf(i, version, map[string][]byte{"settings.yaml": text(i, state, 4096)})
	}},
	{Name: "Secret of PEM", Version: core, Resource: "secrets", Object: func(i, version, state int) Object {
		random := changing(i, state)
		return secretOf(i, version, map[string][]byte{"tls.crt": pem(random, "CERTIFICATE", 1300), "tls.key": pem(random, "RSA PRIVATE KEY", 1650)})
	}},
	{Name: bytecachePod, Version: core, Resource: "pods", Object: func(i, version, state int) Object { return workload(i, version, state) }},
}

func textMeta(i, version int, name string) metav1.ObjectMeta {
	return meta(i, version, fmt.Sprintf("%s-%05d", name, i), `{"f:data":`+set("settings.yaml")+`,"f:metadata":{"f:labels":`+set("app.kubernetes.io/name", "team")+`}}`)
}

func secretOf(i, version int, data map[string][]byte) Object {
	return &corev1.Secret{ObjectMeta: textMeta(i, version, "secret"), Type: corev1.SecretTypeOpaque, Data: data}
}

// pem is a block of n random bytes.
func pem(random *rand.Rand, kind string, n int) []byte {
	raw := make([]byte, n)
	for at := range raw {
		raw[at] = byte(random.Uint32())
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "-----BEGIN %s-----\n", kind)
	for text := base64.StdEncoding.EncodeToString(raw); text != ""; {
		line := min(64, len(text))
		b.WriteString(text[:line] + "\n")
		text = text[line:]
	}
	fmt.Fprintf(&b, "-----END %s-----\n", kind)
	return b.Bytes()
}

var words = strings.Fields("enabled timeout interval retries maxConnections minReplicas maxReplicas endpoint listen address port path level format json " +
	"text debug info warn error production staging cluster region zone bucket database username password secretRef name namespace labels matchLabels app " +
	"component version image repository tag pullPolicy resources limits requests cpu memory volumes volumeMounts mountPath readOnly env value valueFrom key " +
	"data rules alert expr for severity summary description annotations runbook dashboard rate sum by le histogram_quantile job instance container pod node " +
	"service monitor scrape metrics relabel source target regex action replacement keep drop targets tls cert ca insecure skip verify proxy upstream route " +
	"match prefix weight header set add remove cors origins methods allow deny policy role binding subject group user token audience issuer client id scope " +
	"redirect session cookie domain expire refresh cache size ttl eviction shards replicas leader election lease renew deadline queue topic partition " +
	"consumer producer offset commit batch flush buffer compress gzip snappy workers threads pool idle max min default override feature gates flags schema table column index query limit order")

// text is settings like YAML. Of ten values three are one of few, four a word or two, and three
// the text's own.
func text(i, state, size int) []byte {
	random := rand.New(rand.NewPCG(uint64(i), 61))
	word := func() string { return words[min(random.IntN(len(words)), random.IntN(len(words)))] }
	var b bytes.Buffer
	for depth := 0; b.Len() < size; {
		depth = max(0, min(5, depth+random.IntN(3)-1))
		b.WriteString(strings.Repeat("  ", depth))
		if random.IntN(6) == 0 {
			b.WriteString("- ")
		}
		b.WriteString(word())
		if random.IntN(3) == 0 {
			w := word()
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
		switch random.IntN(12) {
		case 0, 1:
			b.WriteString(":")
		case 2, 3, 4:
			b.WriteString(": " + []string{"true", "false", "30s", "5m", "8080", "info", "100m", "IfNotPresent"}[random.IntN(8)])
		case 5, 6:
			b.WriteString(": " + word() + "-" + word())
		case 7:
			fmt.Fprintf(&b, ": \"%s %s of the %s is above %d%%\"", word(), word(), word(), random.IntN(100))
		case 8:
			fmt.Fprintf(&b, ": http://%s-%s.team-%04d.svc:%d/%s", word(), word(), i/40, 1024+random.IntN(9000), word())
		case 9:
			fmt.Fprintf(&b, ": %d", random.IntN(100_000))
		case 10:
			fmt.Fprintf(&b, ": registry.example.com/%s/%s:v%d.%d.%d", word(), word(), random.IntN(9), random.IntN(30), random.IntN(30))
		case 11:
			fmt.Fprintf(&b, ": %016x", random.Uint64())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "revision: %d\n", state)
	return b.Bytes()
}

const bytecachePod = "Pod as of kubernetes#141683"

// workload has the shape of the pods by which that pull request measures its cache, behind an API
// server: each has an owner of its own, two containers, and eight variables each.
func workload(i, version, state int) *corev1.Pod {
	name := fmt.Sprintf("workload-%d", i)
	pod := &corev1.Pod{ObjectMeta: meta(i, version, name, controllersPart(8)), Spec: corev1.PodSpec{
		NodeName: fmt.Sprintf("node-%d", i%500), ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: "default-scheduler",
	}}
	pod.Namespace = "footprint"
	pod.Labels = map[string]string{"app": name, "app.kubernetes.io/name": name, "pod-template-hash": "5f7b8c9d", "topology.kubernetes.io/zone": "us-east-1a"}
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true",
		"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[{"image":"web","name":"web"}]}}`}
	for c := range 2 {
		container := corev1.Container{Name: fmt.Sprintf("container-%d", c), Image: fmt.Sprintf("registry.example.com/app/%s:v1.%d", name, c),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}}}
		for e := range 8 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("APP_SETTING_%d", e), Value: fmt.Sprintf("value-%d-%d", c, e)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, Message: fmt.Sprint("state ", state)}
	return pod
}

// TreePod is the kind of pods without a Go type, of the size of kubernetes#141341: 5.9 KB of heap.
const TreePod = "Pod as of kubernetes#141341"

// SmallPod is such a pod as JSON without kind and apiVersion.
func SmallPod(i, version, state int) []byte {
	random := rand.New(rand.NewPCG(uint64(i), 67))
	return fmt.Appendf(nil, `{"metadata":{"name":"pod-%05d","namespace":"namespace-%d","uid":"%s","resourceVersion":"%s","labels":{"app":"app-%d","tier":"backend"},`+
		`"annotations":{"example.com/note":"pod %d"}},"spec":{"nodeName":"node-%d","containers":[{"name":"main","image":"registry.example.com/app:v%d",`+
		`"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[{"name":"INDEX","value":"%d"},{"name":"MODE","value":"production"}],`+
		`"ports":[{"containerPort":8080,"protocol":"TCP"}]}]},"status":{"phase":"Running","podIP":"%s","state":%d,`+
		`"conditions":[{"type":"Ready","status":"True"},{"type":"Initialized","status":"True"}]}}`,
		i, i%10, uid(random), Version(version), i%50, i, i%100, i%20, i, address(random), state)
}
