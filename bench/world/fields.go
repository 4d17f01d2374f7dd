package world

import (
	"fmt"
	"strings"
)

// Fields by their writers, as server-side apply keeps them. The kubelet's part names the pod's
// address, and so is each pod's own.
var (
	controllerFields = controllersPart(3)
	calicoFields     = `{"f:metadata":{"f:annotations":{"f:cni.projectcalico.org/containerID":{},"f:cni.projectcalico.org/podIP":{},"f:cni.projectcalico.org/podIPs":{}}}}`
	kubeletFields    = kubeletsPart()
)

// set is a set of fields: {".":{},"f:a":{},…}.
func set(fields ...string) string {
	var b strings.Builder
	b.WriteString(`{".":{}`)
	for _, f := range fields {
		if !strings.Contains(f, ":{") {
			f = `"f:` + f + `":{}`
		}
		b.WriteString("," + f)
	}
	return b.String() + "}"
}

func keyed(key, value, fields string) string {
	return fmt.Sprintf(`"k:{\"%s\":\"%s\"}":%s`, key, value, fields)
}

// controllersPart has so many variables of the first container.
func controllersPart(variables int) string {
	probe := set("failureThreshold", `"f:httpGet":`+set("path", "port", "scheme"), "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds")
	container := func(variables int) string {
		env := []string{keyed("name", "POD_NAME", set("name", `"f:valueFrom":{"f:fieldRef":{}}`))}
		for i := range variables {
			env = append(env, keyed("name", fmt.Sprintf("BACKEND_%02d_URL", i), set("name", "value")))
		}
		return set("args", `"f:env":`+set(env...), "image", "imagePullPolicy", "name",
			`"f:ports":`+set(`"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":`+set("containerPort", "name", "protocol")),
			`"f:readinessProbe":`+probe, `"f:resources":`+set("limits", "requests"), `"f:securityContext":`+set("allowPrivilegeEscalation", "readOnlyRootFilesystem"),
			"terminationMessagePath", "terminationMessagePolicy",
			`"f:volumeMounts":`+set(keyed("mountPath", "/etc/service", set("mountPath", "name", "readOnly"))))
	}
	return `{"f:metadata":{"f:annotations":` + set("checksum/config", "prometheus.io/port", "prometheus.io/scrape") + `,"f:generateName":{},"f:labels":` +
		set("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/part-of", "pod-template-hash", "team") +
		`,"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{` + keyed("name", "service", container(variables)) + "," + keyed("name", "log-forwarder", container(0)) +
		`},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":` + set("runAsNonRoot") +
		`,"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:topologySpreadConstraints":{".":{}},"f:volumes":` +
		set(keyed("name", "config", set(`"f:configMap":`+set("defaultMode", "name"), "name"))) + `}}`
}

func kubeletsPart() string {
	var conditions []string
	for _, kind := range []string{"ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"} {
		conditions = append(conditions, keyed("type", kind, set("lastProbeTime", "lastTransitionTime", "observedGeneration", "status", "type")))
	}
	return `{"f:status":{"f:conditions":{` + strings.Join(conditions, ",") + `},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},` +
		`"f:observedGeneration":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"IP\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
}
