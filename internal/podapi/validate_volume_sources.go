package podapi

import (
	"net"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The three forms of an iSCSI name: qualified, EUI-64 and network address authority.
var (
	iscsiIQN = regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`)
	iscsiEUI = regexp.MustCompile(`^eui.[[:alnum:]]{16}$`)
	iscsiNAA = regexp.MustCompile(`^naa.[[:alnum:]]{32}$`)
)

func (v *validator) emptyDir(dir *corev1.EmptyDirVolumeSource, at *field.Path) {
	if dir.SizeLimit != nil && dir.SizeLimit.Sign() < 0 {
		v.forbidden(at.Child("sizeLimit"), "must not be negative")
	}
	if mode, ok := newerAt[int32](v, at.Child("mode")); ok && (mode < 0 || mode > 0o1777) {
		v.invalid(at.Child("mode"), "must be between 0 and 01777 octal")
	}
}

func (v *validator) hostPath(host *corev1.HostPathVolumeSource, at *field.Path) {
	if !v.notEmpty(at.Child("path"), host.Path) {
		return
	}
	v.noBacksteps(host.Path, at.Child("path"))
	if host.Type != nil {
		oneOf(&v.faults, at.Child("type"), *host.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate,
			corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket,
			corev1.HostPathCharDev, corev1.HostPathBlockDev)
	}
}

func (v *validator) gitRepo(repo *corev1.GitRepoVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("repository"), repo.Repository)
	v.relativePath(repo.Directory, at.Child("directory"))
}

func (v *validator) gceDisk(disk *corev1.GCEPersistentDiskVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("pdName"), disk.PDName)
	v.byteRange(disk.Partition, at.Child("partition"))
}

func (v *validator) awsDisk(disk *corev1.AWSElasticBlockStoreVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("volumeID"), disk.VolumeID)
	v.byteRange(disk.Partition, at.Child("partition"))
}

func (v *validator) byteRange(n int32, at *field.Path) {
	if n < 0 || n > 255 {
		v.invalid(at, utilvalidation.InclusiveRangeError(0, 255))
	}
}

func (v *validator) secretVolume(secret *corev1.SecretVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("secretName"), secret.SecretName)
	v.fileMode(secret.DefaultMode, at.Child("defaultMode"))
	v.newerDefaultUser(at)
	for i, item := range secret.Items {
		v.keyToPath(item, at.Child("items").Index(i))
	}
}

func (v *validator) configMapVolume(configMap *corev1.ConfigMapVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("name"), configMap.Name)
	v.fileMode(configMap.DefaultMode, at.Child("defaultMode"))
	v.newerDefaultUser(at)
	for i, item := range configMap.Items {
		v.keyToPath(item, at.Child("items").Index(i))
	}
}

func (v *validator) nfs(nfs *corev1.NFSVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("server"), nfs.Server)
	v.notEmpty(at.Child("path"), nfs.Path)
	if !path.IsAbs(nfs.Path) {
		v.invalid(at.Child("path"), "must be an absolute path")
	}
}

func (v *validator) iscsi(iscsi *corev1.ISCSIVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("targetPortal"), iscsi.TargetPortal)
	if v.notEmpty(at.Child("iqn"), iscsi.IQN) {
		v.iscsiName(iscsi.IQN, at.Child("iqn"))
	}
	v.byteRange(iscsi.Lun, at.Child("lun"))
	if (iscsi.DiscoveryCHAPAuth || iscsi.SessionCHAPAuth) && iscsi.SecretRef == nil {
		v.required(at.Child("secretRef"), "CHAP needs a secret")
	}
	if iscsi.InitiatorName != nil {
		v.iscsiName(*iscsi.InitiatorName, at.Child("initiatorname"))
	}
}

func (v *validator) iscsiName(name string, at *field.Path) {
	for prefix, form := range map[string]*regexp.Regexp{"iqn": iscsiIQN, "eui": iscsiEUI, "naa": iscsiNAA} {
		if strings.HasPrefix(name, prefix) {
			if !form.MatchString(name) {
				v.invalid(at, "is not a valid iSCSI name of its type")
			}
			return
		}
	}
	v.invalid(at, "must be an iSCSI name: iqn, eui or naa")
}

func (v *validator) glusterfs(gluster *corev1.GlusterfsVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("endpoints"), gluster.EndpointsName)
	v.notEmpty(at.Child("path"), gluster.Path)
}

func (v *validator) flocker(flocker *corev1.FlockerVolumeSource, at *field.Path) {
	switch {
	case flocker.DatasetName == "" && flocker.DatasetUUID == "":
		v.required(at, "needs datasetName or datasetUUID")
	case flocker.DatasetName != "" && flocker.DatasetUUID != "":
		v.invalid(at, "has both datasetName and datasetUUID")
	}
	if strings.Contains(flocker.DatasetName, "/") {
		v.invalid(at.Child("datasetName"), "must not have '/' in it")
	}
}

func (v *validator) claimVolume(claim *corev1.PersistentVolumeClaimVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("claimName"), claim.ClaimName)
}

func (v *validator) rbd(rbd *corev1.RBDVolumeSource, at *field.Path) {
	if len(rbd.CephMonitors) == 0 {
		v.required(at.Child("monitors"), "")
	}
	v.notEmpty(at.Child("image"), rbd.RBDImage)
}

func (v *validator) cinder(cinder *corev1.CinderVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("volumeID"), cinder.VolumeID)
	v.secretRef(cinder.SecretRef, at)
}

func (v *validator) secretRef(ref *corev1.LocalObjectReference, at *field.Path) {
	if ref != nil {
		v.notEmpty(at.Child("secretRef", "name"), ref.Name)
	}
}

func (v *validator) cephFS(ceph *corev1.CephFSVolumeSource, at *field.Path) {
	if len(ceph.Monitors) == 0 {
		v.required(at.Child("monitors"), "")
	}
}

func (v *validator) quobyte(quobyte *corev1.QuobyteVolumeSource, at *field.Path) {
	switch {
	case quobyte.Registry == "":
		v.required(at.Child("registry"), "needs host:port pairs, separated by commas")
	case len(quobyte.Tenant) > 64:
		v.required(at.Child("tenant"), "must be a UUID of at most 64 characters")
	default:
		for pair := range strings.SplitSeq(quobyte.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				v.invalid(at.Child("registry"), "needs host:port pairs, separated by commas")
			}
		}
	}
	v.notEmpty(at.Child("volume"), quobyte.Volume)
}

func (v *validator) fibreChannel(fc *corev1.FCVolumeSource, at *field.Path) {
	byName, byID := len(fc.TargetWWNs) > 0, len(fc.WWIDs) > 0
	switch {
	case !byName && !byID:
		v.required(at.Child("targetWWNs"), "needs targetWWNs or wwids")
	case byName && byID:
		v.invalid(at.Child("targetWWNs"), "cannot stand beside wwids")
	}
	switch {
	case byName && fc.Lun == nil:
		v.required(at.Child("lun"), "targetWWNs need a lun")
	case byName:
		v.byteRange(*fc.Lun, at.Child("lun"))
	}
}

func (v *validator) flexVolume(flex *corev1.FlexVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("driver"), flex.Driver)
	for key := range flex.Options {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			v.invalid(at.Child("options").Key(key), "belongs to Kubernetes")
		}
	}
}

func (v *validator) azureFile(azure *corev1.AzureFileVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("secretName"), azure.SecretName)
	v.notEmpty(at.Child("shareName"), azure.ShareName)
}

func (v *validator) vsphere(disk *corev1.VsphereVirtualDiskVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("volumePath"), disk.VolumePath)
}

func (v *validator) photon(disk *corev1.PhotonPersistentDiskVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("pdID"), disk.PdID)
}

func (v *validator) portworx(volume *corev1.PortworxVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("volumeID"), volume.VolumeID)
}

func (v *validator) azureDisk(azure *corev1.AzureDiskVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("diskName"), azure.DiskName)
	v.notEmpty(at.Child("diskURI"), azure.DataDiskURI)
	if azure.CachingMode != nil {
		oneOf(&v.faults, at.Child("cachingMode"), *azure.CachingMode, corev1.AzureDataDiskCachingNone,
			corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)
	}
	if azure.Kind == nil {
		return
	}
	oneOf(&v.faults, at.Child("kind"), *azure.Kind,
		corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk)
	scheme := "https://"
	if *azure.Kind == corev1.AzureManagedDisk {
		scheme = "/subscriptions/"
	}
	if !strings.HasPrefix(azure.DataDiskURI, scheme) {
		v.add(field.ErrorTypeNotSupported, at.Child("diskURI"), "must begin with "+scheme+" for a disk of this kind")
	}
}

func (v *validator) storageOS(storage *corev1.StorageOSVolumeSource, at *field.Path) {
	if v.notEmpty(at.Child("volumeName"), storage.VolumeName) {
		v.messages(at.Child("volumeName"), utilvalidation.IsDNS1123Label(storage.VolumeName))
	}
	if storage.VolumeNamespace != "" {
		v.messages(at.Child("volumeNamespace"), utilvalidation.IsDNS1123Label(storage.VolumeNamespace))
	}
	v.secretRef(storage.SecretRef, at)
}

func (v *validator) scaleIO(volume *corev1.ScaleIOVolumeSource, at *field.Path) {
	v.notEmpty(at.Child("gateway"), volume.Gateway)
	v.notEmpty(at.Child("system"), volume.System)
	v.notEmpty(at.Child("volumeName"), volume.VolumeName)
}

func (v *validator) csi(csi *corev1.CSIVolumeSource, at *field.Path) {
	if v.notEmpty(at.Child("driver"), csi.Driver) {
		if len(csi.Driver) > 63 {
			v.tooLong(at.Child("driver"), "may have 63 characters")
		}
		v.messages(at.Child("driver"), utilvalidation.IsDNS1123Subdomain(strings.ToLower(csi.Driver)))
	}
	if ref := csi.NodePublishSecretRef; ref != nil && v.notEmpty(at.Child("nodePublishSecretRef", "name"), ref.Name) {
		v.messages(at.Child("name"), validation.NameIsDNSSubdomain(ref.Name, false))
	}
}

func (v *validator) imageVolume(image *corev1.ImageVolumeSource, at *field.Path) {
	v.pullPolicy(image.PullPolicy, at.Child("pullPolicy"))
	if v.release >= R137 {
		v.notEmpty(at.Child("reference"), image.Reference)
	}
}
