package podapi

import (
	"path"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type source = corev1.VolumeSource

// volumeKind is one member of the union of volume sources.
type volumeKind struct {
	name  string // its name in the path of "more than one source"
	own   string // its name in the paths of its own faults
	isSet func(*source) bool
	check func(*validator, *source, *field.Path)
}

// kindOf finds the field by the type of the source: no two fields of the union have the same type.
func kindOf[S any](name string, check func(*validator, *S, *field.Path)) volumeKind {
	union, index := reflect.TypeFor[source](), 0
	for union.Field(index).Type != reflect.TypeFor[*S]() {
		index++
	}
	get := func(s *source) *S { return reflect.ValueOf(s).Elem().Field(index).Interface().(*S) }
	return volumeKind{
		name:  name,
		own:   name,
		isSet: func(s *source) bool { return get(s) != nil },
		check: func(v *validator, s *source, at *field.Path) { check(v, get(s), at) },
	}
}

// under renames a kind in the paths of its own faults. The server has three such slips.
func (k volumeKind) under(own string) volumeKind {
	k.own = own
	return k
}

// more renames a kind in the path of the "more than one source" fault.
func (k volumeKind) more(name string) volumeKind {
	k.name = name
	return k
}

// volumeKinds is in the server's order, which decides which of several sources is checked.
var volumeKinds = []volumeKind{
	kindOf("emptyDir", (*validator).emptyDir),
	kindOf("hostPath", (*validator).hostPath),
	kindOf("gitRepo", (*validator).gitRepo),
	kindOf("gcePersistentDisk", (*validator).gceDisk).under("persistentDisk"),
	kindOf("awsElasticBlockStore", (*validator).awsDisk),
	kindOf("secret", (*validator).secretVolume),
	kindOf("nfs", (*validator).nfs),
	kindOf("iscsi", (*validator).iscsi),
	kindOf("glusterfs", (*validator).glusterfs),
	kindOf("flocker", (*validator).flocker),
	kindOf("persistentVolumeClaim", (*validator).claimVolume),
	kindOf("rbd", (*validator).rbd),
	kindOf("cinder", (*validator).cinder),
	kindOf("cephfs", (*validator).cephFS).more("cephFS"),
	kindOf("quobyte", (*validator).quobyte),
	kindOf("downwardAPI", (*validator).downwardVolume).more("downwarAPI"),
	kindOf("fc", (*validator).fibreChannel),
	kindOf("flexVolume", (*validator).flexVolume),
	kindOf("configMap", (*validator).configMapVolume),
	kindOf("azureFile", (*validator).azureFile),
	kindOf("vsphereVolume", (*validator).vsphere),
	kindOf("photonPersistentDisk", (*validator).photon),
	kindOf("portworxVolume", (*validator).portworx),
	kindOf("azureDisk", (*validator).azureDisk),
	kindOf("storageos", (*validator).storageOS),
	kindOf("projected", (*validator).projected),
	kindOf("scaleIO", (*validator).scaleIO),
	kindOf("csi", (*validator).csi),
	kindOf("ephemeral", (*validator).ephemeralVolume),
	kindOf("image", (*validator).imageVolume),
}

// allVolumes keeps the volumes without a fault for the mounts.
func (v *validator) allVolumes() {
	created := sets.New[string]()
	for _, volume := range v.spec.Volumes {
		if volume.Ephemeral != nil && v.pod.Name != "" {
			created.Insert(v.pod.Name + "-" + volume.Name)
		}
	}
	for i := range v.spec.Volumes {
		volume, at := &v.spec.Volumes[i], specPath.Child("volumes").Index(i)
		before := v.count
		v.volumeSource(volume, at)
		if v.notEmpty(at.Child("name"), volume.Name) {
			v.messages(at.Child("name"), utilvalidation.IsDNS1123Label(volume.Name))
		}
		if v.volumes[volume.Name] != nil {
			v.duplicate(at.Child("name"), "")
		}
		if v.count == before {
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
		v.invalid(at.Child("name"), "must be shorter: with an initiatorName, it gets 63 characters together with the targetPortal")
	}
}

// tokenVolumes refuses tokens without a service account. The server faults the pod and not the
// volume, which therefore stays mountable.
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

// relativePath requires a path that stays below its start.
func (v *validator) relativePath(p string, at *field.Path) {
	if path.IsAbs(p) {
		v.invalid(at, "must be a relative path")
	}
	v.noBacksteps(p, at)
}

// fileName requires a relative path that does not look like a hidden directory of a node's volumes.
func (v *validator) fileName(p string, at *field.Path) {
	v.relativePath(p, at)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		v.invalid(at, "must not begin with '..'")
	}
}

func (v *validator) noBacksteps(p string, at *field.Path) {
	if hasBackstep(p) {
		v.invalid(at, "must not contain '..'")
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
	v.newerUser(at, at)
}
