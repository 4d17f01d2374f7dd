package world

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// networkPolicy lets a few applications of its namespace in, the cluster's DNS out, and in one of
// three some addresses of its own.
func networkPolicy(i, version, state int) Object {
	random, app := rand.New(rand.NewPCG(uint64(i), 67)), replicaSetOf(i/20).app()
	labelled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	port := func(protocol corev1.Protocol, number int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number))}}
	}
	p := &networkingv1.NetworkPolicy{ObjectMeta: meta(i, version, fmt.Sprintf("%s-%05d", app, i),
		`{"f:metadata":{"f:annotations":`+set("example.com/revision")+`},"f:spec":`+set("egress", "ingress", "podSelector", "policyTypes")+`}`)}
	p.Annotations = map[string]string{"example.com/revision": fmt.Sprint(state)}
	p.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: *labelled("app.kubernetes.io/name", app), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{
			Ports: port(corev1.ProtocolUDP, 53), To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: labelled("kubernetes.io/metadata.name", "kube-system")}},
		}},
	}
	for range 1 + random.IntN(4) {
		client := replicaSetOf(random.IntN(i/20 + 20)).app()
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{
			Ports: port(corev1.ProtocolTCP, 8080), From: []networkingv1.NetworkPolicyPeer{{PodSelector: labelled("app.kubernetes.io/name", client)}},
		})
	}
	if i%3 == 0 {
		block := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: address(random) + "/32"}}
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{Ports: port(corev1.ProtocolTCP, 5432), To: []networkingv1.NetworkPolicyPeer{block}})
	}
	return p
}

// dashboard is a ConfigMap with the JSON of some 30 panels: one text, which no other has.
func dashboard(i, version, state int) Object {
	random, app := rand.New(rand.NewPCG(uint64(i), 71)), replicaSetOf(i).app()
	var b strings.Builder
	fmt.Fprintf(&b, `{"title":%q,"uid":%q,"version":%d,"panels":[`, app, letters(random, 9), state)
	for panel := range 20 + random.IntN(20) {
		if panel > 0 {
			b.WriteByte(',')
		}
		metric := words[random.IntN(len(words))] + "_" + words[random.IntN(len(words))]
		fmt.Fprintf(&b, `{"id":%d,"type":"timeseries","title":"%s of %s","gridPos":{"h":8,"w":12,"x":%d,"y":%d},"datasource":{"type":"prometheus","uid":"prometheus"},`+
			`"fieldConfig":{"defaults":{"custom":{"drawStyle":"line","lineWidth":1,"fillOpacity":10,"spanNulls":false,"stacking":{"mode":"none"}},"unit":"short","min":0},"overrides":[]},`+
			`"options":{"legend":{"displayMode":"list","placement":"bottom"},"tooltip":{"mode":"multi"}},`+
			`"targets":[{"refId":"A","expr":"sum by (pod) (rate(%s_total{namespace=\"$namespace\",app=\"%s\",code=~\"%d..\"}[%dm]))","legendFormat":"{{pod}}"}]}`,
			panel, metric, app, 12*(panel%2), 8*(panel/2), metric, app, 1+random.IntN(5), 1+random.IntN(10))
	}
	b.WriteString(`],"time":{"from":"now-6h","to":"now"},"refresh":"30s","schemaVersion":39}`)
	m := &corev1.ConfigMap{ObjectMeta: meta(i, version, fmt.Sprintf("dashboard-%s-%05d", app, i), `{"f:data":{".":{},"f:dashboard.json":{}}}`)}
	m.Labels["grafana_dashboard"] = "1"
	m.Data = map[string]string{"dashboard.json": b.String()}
	return m
}

// release is a Secret of a package manager: compressed manifests, encoded twice.
func release(i, version, state int) Object {
	random := changing(i, state)
	packed := make([]byte, 8_000+rand.New(rand.NewPCG(uint64(i), 73)).IntN(16_000))
	for at := range packed {
		packed[at] = byte(random.Uint32())
	}
	app := replicaSetOf(i / 10).app()
	s := secretOf(i, version, map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed))})
	s.SetName(fmt.Sprintf("sh.helm.release.v1.%s.v%d", app, i))
	s.SetLabels(map[string]string{"name": app, "owner": "helm", "status": "deployed", "version": fmt.Sprint(i % 10)})
	return s
}
