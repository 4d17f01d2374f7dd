package podapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/internal/podapi"
)

// The defaults of every pod, so that the tables show only the others.
const (
	everyContainer = `imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File`
	everySpec      = `dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {},
		terminationGracePeriodSeconds: 30, enableServiceLinks: true`
	everyProbe = `timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3`
)

func TestDefault(t *testing.T) {
	for _, row := range []struct{ name, before, after string }{
		{"a container", `spec: {containers: [{name: c, image: "x:1"}]}`,
			`spec: {containers: [{name: c, image: "x:1", ` + everyContainer + `}], ` + everySpec + `}`},
		{"what is set stays", `spec: {containers: [], dnsPolicy: None, restartPolicy: Never, schedulerName: s, enableServiceLinks: false, terminationGracePeriodSeconds: 0}`,
			`spec: {containers: [], dnsPolicy: None, restartPolicy: Never, schedulerName: s, enableServiceLinks: false, terminationGracePeriodSeconds: 0, securityContext: {}}`},
		{"grace period", `spec: {containers: [], terminationGracePeriodSeconds: -1}`,
			`spec: {containers: [], ` + everySpec + `, terminationGracePeriodSeconds: 1}`},
		{"old name of the account", `spec: {containers: [], serviceAccount: a}`,
			`spec: {containers: [], serviceAccount: a, serviceAccountName: a, ` + everySpec + `}`},
		{"old and new name of the account", `spec: {containers: [], serviceAccount: a, serviceAccountName: b}`,
			`spec: {containers: [], serviceAccount: b, serviceAccountName: b, ` + everySpec + `}`},
		{"kind and old annotations", `{apiVersion: v1, kind: Pod, metadata: {annotations: {pod.beta.kubernetes.io/init-containers: x, a: b}}, spec: {containers: []}}`,
			`{metadata: {annotations: {a: b}}, spec: {containers: [], ` + everySpec + `}}`},
		{"ports of a container", `spec: {containers: [{name: c, image: "x:1", ports: [{containerPort: 80}]}]}`,
			`spec: {containers: [{name: c, image: "x:1", ports: [{containerPort: 80, protocol: TCP}], ` + everyContainer + `}], ` + everySpec + `}`},
		{"ports of the host", `spec: {hostNetwork: true, containers: [{name: c, image: "x:1", ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}]}`,
			`spec: {hostNetwork: true, containers: [{name: c, image: "x:1", ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 81, hostPort: 82, protocol: TCP}], ` + everyContainer + `}], ` + everySpec + `}`},
		{"variables", `spec: {containers: [{name: c, image: "x:1", env: [{name: A, valueFrom: {fieldRef: {fieldPath: f}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]}]}`,
			`spec: {containers: [{name: c, image: "x:1", env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: f}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k, optional: false}}}], ` + everyContainer + `}], ` + everySpec + `}`},
		{"probes and hooks", `spec: {initContainers: [{name: c, image: "x:1", livenessProbe: {httpGet: {port: 1}}, readinessProbe: {grpc: {port: 1}}, lifecycle: {preStop: {httpGet: {port: 1}}}}], containers: []}`,
			`spec: {initContainers: [{name: c, image: "x:1", livenessProbe: {httpGet: {port: 1, path: /, scheme: HTTP}, ` + everyProbe + `}, readinessProbe: {grpc: {port: 1, service: ""}, ` + everyProbe + `}, lifecycle: {preStop: {httpGet: {port: 1, path: /, scheme: HTTP}}}, ` + everyContainer + `}], containers: [], ` + everySpec + `}`},
		{"requests are limits", `spec: {containers: [{name: c, image: "x:1", resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m}}}]}`,
			`spec: {containers: [{name: c, image: "x:1", resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 1Gi}}, ` + everyContainer + `}], ` + everySpec + `}`},
		{"amounts are rounded up", `spec: {containers: [{name: c, image: "x:1", resources: {requests: {cpu: 100u, memory: "0.0001"}}}]}`,
			`spec: {containers: [{name: c, image: "x:1", resources: {requests: {cpu: 1m, memory: 1m}}, ` + everyContainer + `}], ` + everySpec + `}`},
		{"requests of a pod are its containers'", `spec: {resources: {limits: {cpu: 2, memory: 1Gi}}, containers: [{name: c, image: "x:1", resources: {requests: {cpu: 300m}}}]}`,
			`spec: {resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: 300m, memory: 1Gi}}, containers: [{name: c, image: "x:1", resources: {requests: {cpu: 300m}}, ` + everyContainer + `}], ` + everySpec + `}`},
		{"requests of a pod with sidecars", `spec: {resources: {limits: {cpu: 9}}, containers: [{name: c, image: "x:1", resources: {requests: {cpu: 1}}}], initContainers: [{name: a, image: "x:1", restartPolicy: Always, resources: {requests: {cpu: 2}}}, {name: b, image: "x:1", resources: {requests: {cpu: 4}}}]}`,
			`spec: {resources: {limits: {cpu: "9"}, requests: {cpu: "6"}}, containers: [{name: c, image: "x:1", resources: {requests: {cpu: "1"}}, ` + everyContainer + `}], initContainers: [{name: a, image: "x:1", restartPolicy: Always, resources: {requests: {cpu: "2"}}, ` + everyContainer + `}, {name: b, image: "x:1", resources: {requests: {cpu: "4"}}, ` + everyContainer + `}], ` + everySpec + `}`},
		{"huge pages of a pod", `spec: {resources: {requests: {cpu: 1}}, containers: [{name: c, image: "x:1", resources: {limits: {hugepages-2Mi: 2Mi}}}]}`,
			`spec: {resources: {requests: {cpu: "1", hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi}}, containers: [{name: c, image: "x:1", resources: {limits: {hugepages-2Mi: 2Mi}, requests: {hugepages-2Mi: 2Mi}}, ` + everyContainer + `}], ` + everySpec + `}`},
		{"addresses", `{spec: {containers: []}, status: {podIP: a, podIPs: [{ip: b}, {ip: c}]}}`,
			`{spec: {containers: [], ` + everySpec + `}, status: {podIP: a, podIPs: [{ip: a}]}}`},
		{"old address", `{spec: {containers: []}, status: {podIPs: [{ip: b}, {ip: c}]}}`,
			`{spec: {containers: [], ` + everySpec + `}, status: {podIP: b, podIPs: [{ip: b}, {ip: c}]}}`},
		{"fields of a newer release", `spec: {containers: [], evictionResponders: [{}], volumes: [{name: v, secret: {defaultUser: 1, items: [{key: k, path: p, user: 1}]}}, {name: w, emptyDir: {mode: 1}}]}`,
			`spec: {containers: [], volumes: [{name: v, secret: {defaultMode: 420, items: [{key: k, path: p}]}}, {name: w, emptyDir: {}}], ` + everySpec + `}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, after := podOf(t, row.before), podOf(t, row.after)
			podapi.R136.Default(before)
			require.JSONEq(t, jsonOf(t, after), jsonOf(t, before))
			podapi.R136.Default(before)
			require.JSONEq(t, jsonOf(t, after), jsonOf(t, before), "the second time")
		})
	}
}

func TestDefaultVolume(t *testing.T) {
	for _, row := range []struct{ name, before, after string }{
		{"nothing", `{}`, `emptyDir: {}`},
		{"hostPath", `hostPath: {path: p}`, `hostPath: {path: p, type: ""}`},
		{"secret", `secret: {secretName: s}`, `secret: {secretName: s, defaultMode: 420}`},
		{"configMap", `configMap: {name: c, defaultMode: 0}`, `configMap: {name: c, defaultMode: 0}`},
		{"downwardAPI", `downwardAPI: {items: [{path: p, fieldRef: {fieldPath: f}}]}`, `downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: f}}]}`},
		{"projected", `projected: {sources: [{serviceAccountToken: {path: p}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: f}}]}}]}`,
			`projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: p, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: f}}]}}]}`},
		{"iscsi", `iscsi: {targetPortal: p, iqn: i, lun: 1}`, `iscsi: {targetPortal: p, iqn: i, lun: 1, iscsiInterface: default}`},
		{"rbd", `rbd: {monitors: [m], image: i}`, `rbd: {monitors: [m], image: i, pool: rbd, user: admin, keyring: /etc/ceph/keyring}`},
		{"azureDisk", `azureDisk: {diskName: d, diskURI: u}`, `azureDisk: {diskName: d, diskURI: u, cachingMode: ReadWrite, fsType: ext4, readOnly: false, kind: Shared}`},
		{"scaleIO", `scaleIO: {gateway: g, system: s, secretRef: {}}`, `scaleIO: {gateway: g, system: s, secretRef: {}, storageMode: ThinProvisioned, fsType: xfs}`},
		{"ephemeral", `ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1u}}}}}`, `ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem, resources: {requests: {storage: 1m}}}}}`},
		{"image", `image: {reference: x}`, `image: {reference: x, pullPolicy: Always}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, after := podWith(t, inVolume, row.before), podWith(t, inVolume, row.after)
			podapi.R136.Default(before)
			require.JSONEq(t, jsonOf(t, after.Spec.Volumes), jsonOf(t, before.Spec.Volumes))
		})
	}
}

func TestDefaultPullPolicy(t *testing.T) {
	const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[string]corev1.PullPolicy{
		"x":                          corev1.PullAlways,
		"x:latest":                   corev1.PullAlways,
		"docker.io/x":                corev1.PullAlways,
		"index.docker.io/x/y:latest": corev1.PullAlways,
		"example.com:5000/x":         corev1.PullAlways,
		"localhost/x":                corev1.PullAlways,
		"[::1]:80/x":                 corev1.PullAlways,
		"Host/x":                     corev1.PullAlways,
		"a__b-c.d/e--f":              corev1.PullAlways,
		"x:latest@sha256:" + hex64:   corev1.PullAlways,
		"x:1":                        corev1.PullIfNotPresent,
		"x@sha256:" + hex64:          corev1.PullIfNotPresent,
		"x@sha256:" + hex64[:32]:     corev1.PullIfNotPresent,
		"x@md5:" + hex64[:32]:        corev1.PullIfNotPresent,
		hex64:                        corev1.PullIfNotPresent,
		"X":                          corev1.PullIfNotPresent,
		"example.com/X":              corev1.PullIfNotPresent,
		"x:::":                       corev1.PullIfNotPresent,
		" x":                         corev1.PullIfNotPresent,
		"a___b":                      corev1.PullIfNotPresent,
		"":                           corev1.PullIfNotPresent,
		"example.com/" + strings.Repeat("a", 256): corev1.PullIfNotPresent,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		podapi.R136.Default(pod)
		require.Equal(t, want, pod.Spec.Containers[0].ImagePullPolicy, image)
	}
}

func TestAPIReference(t *testing.T) {
	for fragment, want := range map[string]string{
		`{}`:                                            "",
		`serviceAccountName: a`:                         "service account",
		`imagePullSecrets: [{}]`:                        "",
		`imagePullSecrets: [{name: a}]`:                 "secret",
		`resourceClaims: [{name: a}]`:                   "resource claim",
		`containers: [{envFrom: [{secretRef: {}}]}]`:    "secret",
		`containers: [{envFrom: [{configMapRef: {}}]}]`: "config map",
		`initContainers: [{env: [{name: a, valueFrom: {secretKeyRef: {key: a}}}]}]`:            "secret",
		`containers: [{env: [{name: a, valueFrom: {configMapKeyRef: {key: a}}}]}]`:             "config map",
		`containers: [{env: [{name: a, value: b}]}]`:                                           "",
		`volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /x}}]`:                  "",
		`volumes: [{name: a, secret: {}}]`:                                                     "secret",
		`volumes: [{name: a, configMap: {}}]`:                                                  "config map",
		`volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]`:                          "persistent volume claim",
		`volumes: [{name: a, ephemeral: {}}]`:                                                  "persistent volume claim",
		`volumes: [{name: a, csi: {driver: d}}]`:                                               "CSI driver",
		`volumes: [{name: a, azureFile: {secretName: s, shareName: s}}]`:                       "secret",
		`volumes: [{name: a, glusterfs: {endpoints: e, path: p}}]`:                             "endpoints of glusterfs",
		`volumes: [{name: a, iscsi: {targetPortal: t, iqn: i, lun: 1}}]`:                       "",
		`volumes: [{name: a, iscsi: {targetPortal: t, iqn: i, lun: 1, secretRef: {name: s}}}]`: "secret",
		`volumes: [{name: a, rbd: {monitors: [m], image: i, secretRef: {name: s}}}]`:           "secret",
		`volumes: [{name: a, cephfs: {monitors: [m], secretRef: {name: s}}}]`:                  "secret",
		`volumes: [{name: a, cinder: {volumeID: v, secretRef: {name: s}}}]`:                    "secret",
		`volumes: [{name: a, flexVolume: {driver: d, secretRef: {name: s}}}]`:                  "secret",
		`volumes: [{name: a, storageos: {volumeName: v, secretRef: {name: s}}}]`:               "secret",
		`volumes: [{name: a, scaleIO: {gateway: g, system: s, secretRef: {name: s}}}]`:         "secret",
		`volumes: [{name: a, projected: {sources: [{downwardAPI: {}}]}}]`:                      "",
		`volumes: [{name: a, projected: {sources: [{downwardAPI: {}}, {secret: {}}]}}]`:        "secret",
		`volumes: [{name: a, projected: {sources: [{configMap: {}}]}}]`:                        "config map",
		`volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: p}}]}}]`:       "service account",
		`volumes: [{name: a, projected: {sources: [{clusterTrustBundle: {path: p}}]}}]`:        "cluster trust bundle",
		`volumes: [{name: a, projected: {sources: [{podCertificate: {}}]}}]`:                   "pod certificate",
		`volumes: [{name: a, projected: {sources: [{}]}}]`:                                     "projected source of an unknown kind",
	} {
		var spec corev1.PodSpec
		unmarshal(t, fragment, &spec)
		require.Equal(t, want, podapi.APIReference(&corev1.Pod{Spec: spec}), fragment)
	}
}

// However many faults a pod has, the errors stay bounded.
func TestValidateIsBounded(t *testing.T) {
	pod := podOf(t, `metadata: {name: a, namespace: b}`)
	pod.Spec.Containers = make([]corev1.Container, 1000)
	pod.Spec.Tolerations = make([]corev1.Toleration, 1000)
	podapi.R136.Default(pod)
	require.Len(t, podapi.R136.Validate(pod, nil), 256)
}

// No error repeats a manifest's value, whatever the field.
func TestValidateRepeatsNoValue(t *testing.T) {
	const secret = "S3cret VALUE"
	pod := podWith(t, inSpec, `
restartPolicy: S3cret VALUE
hostname: S3cret VALUE
nodeSelector: {a: S3cret VALUE}
dnsConfig: {nameservers: [S3cret VALUE]}
tolerations: [{key: S3cret VALUE, effect: S3cret VALUE}]
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: {a: S3cret VALUE}}}]}}
containers: [{name: c, image: " S3cret VALUE", env: [{name: "=S3cret VALUE"}], livenessProbe: {httpGet: {port: S3cret VALUE}}}]
volumes: [{name: v, iscsi: {targetPortal: a, iqn: S3cret VALUE, lun: 1}}]`)
	pod.OwnerReferences = append(pod.OwnerReferences, podOf(t, `metadata: {ownerReferences: [{apiVersion: v1, kind: Event, name: S3cret VALUE, uid: S3cret VALUE}]}`).OwnerReferences...)
	podapi.R136.Default(pod)
	faults := podapi.R136.Validate(pod, nil)
	require.GreaterOrEqual(t, len(faults), 10)
	for _, fault := range faults {
		require.NotContains(t, fault.Error(), secret)
	}
}

func podOf(t *testing.T, text string) *corev1.Pod {
	pod := &corev1.Pod{}
	unmarshal(t, text, pod)
	return pod
}

func jsonOf(t *testing.T, object any) string {
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return string(data)
}
