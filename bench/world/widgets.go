package world

import (
	"fmt"
	"math/rand/v2"
)

// Widget is custom resource number i at version, as JSON without kind and apiVersion: some 4 KB, a
// third of them managedFields. Twenty widgets come from one template.
func Widget(i, version, state int) []byte {
	random := rand.New(rand.NewPCG(uint64(i), 13))
	set := replicaSetOf(i / 20)
	rules := ""
	for n := range 8 {
		if n > 0 {
			rules += ","
		}
		rules += fmt.Sprintf(`{"host":"%s-%d.%s.example.com","paths":[{"path":"/api/v%d","backend":{"service":"%s-backend-%d","port":8080,"weight":%d}}],"timeoutSeconds":30,"retries":{"attempts":3,"perTry":2.5}}`,
			set.app(), n, set.namespace(), n, set.app(), n, 10+n)
	}
	created := after(random).UTC().Format("2006-01-02T15:04:05Z")
	return fmt.Appendf(nil, `{"metadata":{"name":"%s-%05d","namespace":"%s","uid":"%s","resourceVersion":"%s","generation":%d,"creationTimestamp":"%s",`+
		`"labels":{"app.kubernetes.io/name":"%s","app.kubernetes.io/part-of":"%s","team":"%s"},"annotations":{"checksum/config":"%s"},`+
		`"managedFields":[{"manager":"argocd-controller","operation":"Apply","apiVersion":"example.com/v1","time":"%s","fieldsType":"FieldsV1","fieldsV1":%s},`+
		`{"manager":"widget-operator","operation":"Update","apiVersion":"example.com/v1","time":"%s","fieldsType":"FieldsV1","subresource":"status","fieldsV1":%s}]},`+
		`"spec":{"replicas":%d,"class":"standard","tls":{"secretName":"%s-tls","minVersion":"1.2"},"rules":[%s]},`+
		`"status":{"observedGeneration":%d,"address":"%s","conditions":[{"type":"Ready","status":"%t","reason":"Reconciled","message":"all backends answer","lastTransitionTime":"%s"},`+
		`{"type":"Programmed","status":"True","reason":"Programmed","message":"","lastTransitionTime":"%s"}]}}`,
		set.name(), i, set.namespace(), uid(random), Version(version), 1+state, created, set.app(), set.namespace(), set.namespace(), hex(random, 32),
		created, widgetFields, created, widgetStatusFields, 1+set.number%5, set.app(), rules, 1+state, address(random), state%2 == 0, created, created)
}

var (
	widgetFields       = `{"f:metadata":{"f:labels":` + set("app.kubernetes.io/name", "app.kubernetes.io/part-of", "team") + `},"f:spec":` + set("replicas", "class", `"f:tls":`+set("secretName", "minVersion"), "rules") + `}`
	widgetStatusFields = `{"f:status":` + set("observedGeneration", "address", `"f:conditions":`+set(keyed("type", "Ready", set("type", "status", "reason", "message", "lastTransitionTime")))) + `}`
)
