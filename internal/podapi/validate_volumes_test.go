package podapi_test

import (
	"strings"
	"testing"
)

var volumeRules = []rule{
	{"no source is an emptyDir", `{}`, ""},
	{"name", `name: V`, "V.name"},
	{"name is needed", `name: ""`, "V.name"},
	{"two sources", `{emptyDir: {}, hostPath: {path: /x}, image: {reference: x}}`, "V.hostPath V.image"},
	{"two sources under odd names", `{emptyDir: {}, gcePersistentDisk: {pdName: x}, cephfs: {monitors: [x]}, downwardAPI: {}}`, "V.gcePersistentDisk V.cephFS V.downwarAPI"},
	{"emptyDir", `emptyDir: {sizeLimit: -1}`, "V.emptyDir.sizeLimit"},
	{"hostPath may be relative", `hostPath: {path: x}`, ""},
	{"hostPath", `hostPath: {path: /a/../b, type: Folder}`, "V.hostPath.path V.hostPath.type"},
	{"hostPath is needed", `hostPath: {type: Folder}`, "V.hostPath.path"},
	{"gitRepo", `gitRepo: {directory: /x}`, "V.gitRepo.repository V.gitRepo.directory"},
	{"gcePersistentDisk", `gcePersistentDisk: {partition: 256}`, "V.persistentDisk.pdName V.persistentDisk.partition"},
	{"awsElasticBlockStore", `awsElasticBlockStore: {partition: -1}`, "V.awsElasticBlockStore.volumeID V.awsElasticBlockStore.partition"},
	{"secret", `secret: {defaultMode: 512, items: [{key: a, path: ..b, mode: -1}]}`, "V.secret.secretName V.secret.defaultMode V.secret.items[0].path V.secret.items[0].mode"},
	{"configMap", `configMap: {items: [{}]}`, "V.configMap.name V.configMap.items[0].key V.configMap.items[0].path"},
	{"nfs", `nfs: {server: s, path: x}`, "V.nfs.path"},
	{"iscsi", `iscsi: {targetPortal: t, iqn: "iqn.2001-04.com.example:x"}`, ""},
	{"iscsi without all", `iscsi: {lun: 256, chapAuthSession: true}`, "V.iscsi.targetPortal V.iscsi.iqn V.iscsi.lun V.iscsi.secretRef"},
	{"iscsi names", `iscsi: {targetPortal: t, iqn: naa.1, initiatorName: eui.1}`, "V.iscsi.iqn V.iscsi.initiatorname"},
	{"iscsi initiator has a short volume name", `iscsi: {targetPortal: ` + strings.Repeat("t", 63) + `, iqn: "iqn.2001-04.com.example:x", initiatorName: "iqn.2001-04.com.example:x"}`, "V.name"},
	{"glusterfs", `glusterfs: {}`, "V.glusterfs.endpoints V.glusterfs.path"},
	{"flocker of nothing", `flocker: {}`, "V.flocker"},
	{"flocker of both", `flocker: {datasetName: a/b, datasetUUID: c}`, "V.flocker V.flocker.datasetName"},
	{"persistentVolumeClaim", `persistentVolumeClaim: {}`, "V.persistentVolumeClaim.claimName"},
	{"rbd", `rbd: {}`, "V.rbd.monitors V.rbd.image"},
	{"cinder", `cinder: {secretRef: {}}`, "V.cinder.volumeID V.cinder.secretRef.name"},
	{"cephfs", `cephfs: {}`, "V.cephfs.monitors"},
	{"quobyte", `quobyte: {registry: "a:1,b"}`, "V.quobyte.registry V.quobyte.volume"},
	{"quobyte without a registry", `quobyte: {volume: v}`, "V.quobyte.registry"},
	{"storageos volume", `storageos: {volumeName: A}`, "V.storageos.volumeName"},
	{"quobyte tenant", `quobyte: {registry: b, volume: v, tenant: ` + strings.Repeat("t", 65) + `}`, "V.quobyte.tenant"},
	{"fc of nothing", `fc: {}`, "V.fc.targetWWNs"},
	{"fc of both", `fc: {targetWWNs: [a], wwids: [b]}`, "V.fc.targetWWNs V.fc.lun"},
	{"fc", `fc: {targetWWNs: [a], lun: 256}`, "V.fc.lun"},
	{"flexVolume", `flexVolume: {options: {a.k8s.io/x: a, kubernetes.io: b}}`, "V.flexVolume.driver V.flexVolume.options[a.k8s.io/x] V.flexVolume.options[kubernetes.io]"},
	{"azureFile", `azureFile: {}`, "V.azureFile.secretName V.azureFile.shareName"},
	{"azureDisk", `azureDisk: {kind: Managed, cachingMode: Some}`, "V.azureDisk.diskName V.azureDisk.diskURI V.azureDisk.cachingMode"},
	{"azureDisk elsewhere", `azureDisk: {diskName: a, diskURI: http://x, kind: Odd}`, "V.azureDisk.kind V.azureDisk.diskURI"},
	{"vsphereVolume", `vsphereVolume: {}`, "V.vsphereVolume.volumePath"},
	{"photonPersistentDisk", `photonPersistentDisk: {}`, "V.photonPersistentDisk.pdID"},
	{"portworxVolume", `portworxVolume: {}`, "V.portworxVolume.volumeID"},
	{"storageos", `storageos: {volumeNamespace: A, secretRef: {}}`, "V.storageos.volumeName V.storageos.volumeNamespace V.storageos.secretRef.name"},
	{"scaleIO", `scaleIO: {}`, "V.scaleIO.gateway V.scaleIO.system V.scaleIO.volumeName"},
	{"csi", `csi: {driver: A.b, nodePublishSecretRef: {name: S}}`, "V.csi.name"},
	{"csi driver", `csi: {driver: ` + strings.Repeat("d", 64) + `_, nodePublishSecretRef: {}}`, "V.csi.driver V.csi.nodePublishSecretRef.name"},
	{"image without a reference", `image: {}`, ""},
	{"image", `image: {reference: x, pullPolicy: Now}`, "V.image.pullPolicy"},

	{"downwardAPI", `downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.labels}}, {path: b, resourceFieldRef: {containerName: c, resource: limits.cpu}}]}`, ""},
	{"downwardAPI modes", `downwardAPI: {defaultMode: 512, items: [{path: /a, mode: 512, fieldRef: {fieldPath: metadata.name}}]}`, "V.downwardAPI.defaultMode V.downwardAPI.path V.downwardAPI.mode"},
	{"downwardAPI of nothing", `downwardAPI: {items: [{path: a}]}`, "V.downwardAPI"},
	{"downwardAPI of both", `downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}, resourceFieldRef: {}}]}`, "V.downwardAPI V.downwardAPI.fieldRef.fieldPath"},
	{"downwardAPI of no container", `downwardAPI: {items: [{path: a, resourceFieldRef: {resource: limits.cpu, divisor: 3}}]}`, "V.downwardAPI.resourceFieldRef.containerName V.downwardAPI.resourceFieldRef.divisor"},

	{"ephemeral", `ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}`, ""},
	{"ephemeral without a template", `ephemeral: {}`, "V.ephemeral.volumeClaimTemplate"},
	{"ephemeral metadata", `ephemeral: {volumeClaimTemplate: {metadata: {name: x, labels: {a: "-"}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}`,
		"V.ephemeral.volumeClaimTemplate.metadata.name V.ephemeral.volumeClaimTemplate.metadata.labels"},
	{"ephemeral spec", `ephemeral: {volumeClaimTemplate: {spec: {storageClassName: A, volumeMode: Tape, volumeAttributesClassName: A}}}`,
		"V.ephemeral.volumeClaimTemplate.spec.accessModes V.ephemeral.volumeClaimTemplate.spec.resources[storage] V.ephemeral.volumeClaimTemplate.spec.storageClassName V.ephemeral.volumeClaimTemplate.spec.volumeMode V.ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName"},
	{"ephemeral access modes", `ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOncePod, ReadOnlyMany], resources: {requests: {storage: 0}}}}}`,
		"V.ephemeral.volumeClaimTemplate.spec.accessModes V.ephemeral.volumeClaimTemplate.spec.resources[storage]"},
	{"ephemeral selector", `ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}, selector: {matchLabels: {a: "-"}}}}}`,
		"V.ephemeral.volumeClaimTemplate.spec.selector.matchLabels"},
	{"ephemeral data sources", `ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}, dataSource: {kind: Pod, name: a}, dataSourceRef: {apiGroup: A, kind: B, namespace: C}}}}`,
		"V.ephemeral.volumeClaimTemplate.spec V.ephemeral.volumeClaimTemplate.spec.dataSource V.ephemeral.volumeClaimTemplate.spec.dataSourceRef.name V.ephemeral.volumeClaimTemplate.spec.dataSourceRef.apiGroup V.ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace"},

	{"projected", `projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {configMap: {name: x}}, {secret: {name: x}}]}`, ""},
	{"projected source of nothing", `projected: {sources: [{}]}`, ""},
	{"projected mode", `projected: {defaultMode: -1}`, "V.projected.defaultMode"},
	{"projected sources in one", `projected: {sources: [{configMap: {}, secret: {}}]}`, "V.projected.sources[0] V.projected.sources[0].configMap.name V.projected.sources[0].secret.name"},
	{"projected paths differ", `projected: {sources: [{configMap: {name: a, items: [{key: a, path: p}]}}, {secret: {name: a, items: [{key: a, path: p}]}}]}`, "V.projected"},
	{"projected token needs an account", `projected: {sources: [{serviceAccountToken: {path: t}}]}`, "V.projected.sources[0].serviceAccountToken"},
	{"projected token", `projected: {sources: [{serviceAccountToken: {expirationSeconds: 599}}]}`,
		"V.projected.path V.projected.sources[0].serviceAccountToken V.projected.sources[0].serviceAccountToken.expirationSeconds"},
	{"trust bundle of nothing", `projected: {sources: [{clusterTrustBundle: {}}]}`, "V.projected.sources[0].clusterTrustBundle V.projected.sources[0].clusterTrustBundle.path"},
	{"trust bundle of both", `projected: {sources: [{clusterTrustBundle: {name: a, signerName: a.b/c, path: p}}]}`, "V.projected.sources[0].clusterTrustBundle"},
	{"trust bundle by name", `projected: {sources: [{clusterTrustBundle: {name: "a.b:c:d", path: p}}, {clusterTrustBundle: {name: ":d", labelSelector: {}, path: p}}]}`,
		"V.projected V.projected.sources[1].clusterTrustBundle.name V.projected.sources[1].clusterTrustBundle.labelSelector"},
	{"trust bundle by signer", `projected: {sources: [{clusterTrustBundle: {signerName: a/b, path: p, labelSelector: {matchLabels: {"-": b}}}}]}`,
		"V.projected.sources[0].clusterTrustBundle.signerName V.projected.sources[0].clusterTrustBundle.labelSelector.matchLabels"},
	{"pod certificate", `projected: {sources: [{podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: k, certificateChainPath: c}}]}`, ""},
	{"pod certificate signer", `projected: {sources: [{podCertificate: {signerName: ` + strings.Repeat("a.", 127) + `b/c, keyType: ED25519, keyPath: k}}, {podCertificate: {signerName: A.b/C, keyType: ED25519, keyPath: l}}, {podCertificate: {signerName: a/b/c, keyType: ED25519, keyPath: m}}]}`,
		"V.projected.sources[0].podCertificate.signerName V.projected.sources[1].podCertificate.signerName V.projected.sources[2].podCertificate.signerName"},
	{"pod certificate annotations have 256 KiB", `projected: {sources: [{podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: k, userAnnotations: {a.b/c: ` + strings.Repeat("x", 256<<10) + `}}}]}`,
		"V.projected.sources[0].podCertificate.userAnnotations"},
	{"pod certificate without all", `projected: {sources: [{podCertificate: {maxExpirationSeconds: 3599, userAnnotations: {a: b}}}]}`,
		"V.projected.sources[0].podCertificate V.projected.sources[0].podCertificate.signerName V.projected.sources[0].podCertificate.keyType V.projected.sources[0].podCertificate.maxExpirationSeconds V.projected.sources[0].podCertificate.userAnnotations"},
	{"pod certificate of Kubernetes", `projected: {sources: [{podCertificate: {signerName: kubernetes.io/c, keyType: ED25519, keyPath: k, credentialBundlePath: k, maxExpirationSeconds: 86401}}]}`,
		"V.projected V.projected.sources[0].podCertificate.maxExpirationSeconds"},
}

func TestVolumeRules(t *testing.T) {
	testRules(t, inVolume, volumeRules)
}

var podVolumeRules = []rule{
	{"names differ", `volumes: [{name: a}, {name: a}]`, "spec.volumes[1].name"},
	{"bad volume cannot be mounted", `{volumes: [{name: a, nfs: {}}], containers: [{name: c, image: x, volumeMounts: [{name: a, mountPath: /a}]}]}`,
		"spec.volumes[0].nfs.server spec.volumes[0].nfs.path spec.containers[0].volumeMounts[0].name"},
	{"volume with a refused token can be mounted", `{volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}], containers: [{name: c, image: x, volumeMounts: [{name: a, mountPath: /a}]}]}`,
		"spec.volumes[0].projected.sources[0].serviceAccountToken"},
	{"devices", `{volumes: [{name: a, persistentVolumeClaim: {claimName: x}}], containers: [{name: c, image: x, volumeDevices: [{name: a, devicePath: /dev/a}]}]}`, ""},
	{"devices twice", `{volumes: [{name: a, persistentVolumeClaim: {claimName: x}}], containers: [{name: c, image: x, volumeDevices: [{name: a, devicePath: /dev/a}, {name: a, devicePath: /dev/a}]}]}`,
		"spec.containers[0].volumeDevices[1].name spec.containers[0].volumeDevices[1].devicePath"},
	{"claim of an ephemeral volume", `volumes: [{name: e, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}}, {name: c, persistentVolumeClaim: {claimName: p-e}}]`,
		"spec.volumes[1].persistentVolumeClaim.claimName"},
}

func TestPodVolumeRules(t *testing.T) {
	testRules(t, inSpec, podVolumeRules)
}
