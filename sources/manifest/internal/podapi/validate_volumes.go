package podapi

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type source = corev1.VolumeSource

// volumeKind is one member of the union that is a volume's source.
type volumeKind struct {
	name  string // as the path of "more than one source" has it
	own   string // as the paths of the source's own faults have it
	isSet func(*source) bool
	check func(*validator, *source, *field.Path)
}

// kindOf makes a volumeKind of a field of the union and its check.
func kindOf[S any](name string, get func(*source) *S, check func(*validator, *S, *field.Path)) volumeKind {
	return volumeKind{
		name:  name,
		own:   name,
		isSet: func(s *source) bool { return get(s) != nil },
		check: func(v *validator, s *source, at *field.Path) { check(v, get(s), at) },
	}
}

// under gives the paths of a kind's own faults another name than the field has. The server has three such slips.
func (k volumeKind) under(own string) volumeKind {
	k.own = own
	return k
}

// more gives the path of the "more than one source" fault another name.
func (k volumeKind) more(name string) volumeKind {
	k.name = name
	return k
}

// volumeKinds is in the server's order, which decides which of several sources is looked into.
var volumeKinds = []volumeKind{
	kindOf("emptyDir", func(s *source) *corev1.EmptyDirVolumeSource { return s.EmptyDir }, (*validator).emptyDir),
	kindOf("hostPath", func(s *source) *corev1.HostPathVolumeSource { return s.HostPath }, (*validator).hostPath),
	kindOf("gitRepo", func(s *source) *corev1.GitRepoVolumeSource { return s.GitRepo }, (*validator).gitRepo),
	kindOf("gcePersistentDisk", func(s *source) *corev1.GCEPersistentDiskVolumeSource { return s.GCEPersistentDisk }, (*validator).gceDisk).under("persistentDisk"),
	kindOf("awsElasticBlockStore", func(s *source) *corev1.AWSElasticBlockStoreVolumeSource { return s.AWSElasticBlockStore }, (*validator).awsDisk),
	kindOf("secret", func(s *source) *corev1.SecretVolumeSource { return s.Secret }, (*validator).secretVolume),
	kindOf("nfs", func(s *source) *corev1.NFSVolumeSource { return s.NFS }, (*validator).nfs),
	kindOf("iscsi", func(s *source) *corev1.ISCSIVolumeSource { return s.ISCSI }, (*validator).iscsi),
	kindOf("glusterfs", func(s *source) *corev1.GlusterfsVolumeSource { return s.Glusterfs }, (*validator).glusterfs),
	kindOf("flocker", func(s *source) *corev1.FlockerVolumeSource { return s.Flocker }, (*validator).flocker),
	kindOf("persistentVolumeClaim", func(s *source) *corev1.PersistentVolumeClaimVolumeSource { return s.PersistentVolumeClaim }, (*validator).claimVolume),
	kindOf("rbd", func(s *source) *corev1.RBDVolumeSource { return s.RBD }, (*validator).rbd),
	kindOf("cinder", func(s *source) *corev1.CinderVolumeSource { return s.Cinder }, (*validator).cinder),
	kindOf("cephfs", func(s *source) *corev1.CephFSVolumeSource { return s.CephFS }, (*validator).cephFS).more("cephFS"),
	kindOf("quobyte", func(s *source) *corev1.QuobyteVolumeSource { return s.Quobyte }, (*validator).quobyte),
	kindOf("downwardAPI", func(s *source) *corev1.DownwardAPIVolumeSource { return s.DownwardAPI }, (*validator).downwardVolume).more("downwarAPI"),
	kindOf("fc", func(s *source) *corev1.FCVolumeSource { return s.FC }, (*validator).fibreChannel),
	kindOf("flexVolume", func(s *source) *corev1.FlexVolumeSource { return s.FlexVolume }, (*validator).flexVolume),
	kindOf("configMap", func(s *source) *corev1.ConfigMapVolumeSource { return s.ConfigMap }, (*validator).configMapVolume),
	kindOf("azureFile", func(s *source) *corev1.AzureFileVolumeSource { return s.AzureFile }, (*validator).azureFile),
	kindOf("vsphereVolume", func(s *source) *corev1.VsphereVirtualDiskVolumeSource { return s.VsphereVolume }, (*validator).vsphere),
	kindOf("photonPersistentDisk", func(s *source) *corev1.PhotonPersistentDiskVolumeSource { return s.PhotonPersistentDisk }, (*validator).photon),
	kindOf("portworxVolume", func(s *source) *corev1.PortworxVolumeSource { return s.PortworxVolume }, (*validator).portworx),
	kindOf("azureDisk", func(s *source) *corev1.AzureDiskVolumeSource { return s.AzureDisk }, (*validator).azureDisk),
	kindOf("storageos", func(s *source) *corev1.StorageOSVolumeSource { return s.StorageOS }, (*validator).storageOS),
	kindOf("projected", func(s *source) *corev1.ProjectedVolumeSource { return s.Projected }, (*validator).projected),
	kindOf("scaleIO", func(s *source) *corev1.ScaleIOVolumeSource { return s.ScaleIO }, (*validator).scaleIO),
	kindOf("csi", func(s *source) *corev1.CSIVolumeSource { return s.CSI }, (*validator).csi),
	kindOf("ephemeral", func(s *source) *corev1.EphemeralVolumeSource { return s.Ephemeral }, (*validator).ephemeralVolume),
	kindOf("image", func(s *source) *corev1.ImageVolumeSource { return s.Image }, (*validator).imageVolume),
}

// allVolumes checks the volumes, and keeps those without a fault for the mounts.
func (v *validator) allVolumes() {
	created := sets.New[string]()
	for _, volume := range v.spec.Volumes {
		if volume.Ephemeral != nil && v.pod.Name != "" {
			created.Insert(v.pod.Name + "-" + volume.Name)
		}
	}
	for i := range v.spec.Volumes {
		volume, at := &v.spec.Volumes[i], specPath.Child("volumes").Index(i)
		before := len(v.list)
		v.volumeSource(volume, at)
		if v.notEmpty(at.Child("name"), volume.Name) {
			v.messages(at.Child("name"), utilvalidation.IsDNS1123Label(volume.Name))
		}
		if v.volumes[volume.Name] != nil {
			v.duplicate(at.Child("name"), "")
		}
		if len(v.list) == before {
			v.volumes[volume.Name] = &volume.VolumeSource
		}
		if claim := volume.PersistentVolumeClaim; claim != nil && created.Has(claim.ClaimName) {
			v.invalid(at.Child("persistentVolumeClaim", "claimName"), "is the claim of an ephemeral volume of this pod")
		}
	}
}

func (v *validator) volumeSource(volume *corev1.Volume, at *field.Path) {
	src := &volume.VolumeSource
	union := atMostOne{f: &v.faults, why: "a volume has one source"}
	for _, kind := range volumeKinds {
		if kind.isSet(src) && union.take(at.Child(kind.name)) {
			kind.check(v, src, at.Child(kind.own))
			if kind.name == "ephemeral" && v.pod.Name != "" && volume.Name != "" {
				v.messages(at.Child("name"), validation.NameIsDNSSubdomain(v.pod.Name+"-"+volume.Name, false))
			}
		}
	}
	if !union.seen {
		v.required(at, "needs a source")
	}
	if iscsi := src.ISCSI; iscsi != nil && iscsi.InitiatorName != nil && len(volume.Name)+1+len(iscsi.TargetPortal) > 64 {
		v.invalid(at.Child("name"), "has to be shorter: with an initiatorName, the volume's name and the targetPortal get 63 characters")
	}
}

// tokenVolumes refuses tokens of no service account. The server asks this of the pod and not of the volume, which
// therefore stays mountable.
func (v *validator) tokenVolumes() {
	if v.spec.ServiceAccountName != "" {
		return
	}
	for i := range v.spec.Volumes {
		if v.spec.Volumes[i].Projected == nil {
			continue
		}
		at := specPath.Child("volumes").Index(i).Child("projected", "sources")
		for j, projection := range v.spec.Volumes[i].Projected.Sources {
			if projection.ServiceAccountToken != nil {
				v.forbidden(at.Index(j).Child("serviceAccountToken"), "needs serviceAccountName")
			}
		}
	}
}

// relativePath wants a path that stays below where it starts.
func (v *validator) relativePath(p string, at *field.Path) {
	if path.IsAbs(p) {
		v.invalid(at, "must be a relative path")
	}
	v.noBacksteps(p, at)
}

// fileName wants a relative path that does not look like one of the hidden directories of a node's volumes either.
func (v *validator) fileName(p string, at *field.Path) {
	v.relativePath(p, at)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		v.invalid(at, "must not begin with '..'")
	}
}

func (v *validator) noBacksteps(p string, at *field.Path) {
	if hasBackstep(p) {
		v.invalid(at, "must not have '..' in it")
	}
}

func hasBackstep(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

func (v *validator) fileMode(mode *int32, at *field.Path) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		v.invalid(at, "must be between 0 and 0777 octal")
	}
}

func (v *validator) keyToPath(item corev1.KeyToPath, at *field.Path) {
	v.notEmpty(at.Child("key"), item.Key)
	v.notEmpty(at.Child("path"), item.Path)
	v.fileName(item.Path, at.Child("path"))
	v.fileMode(item.Mode, at.Child("mode"))
}
