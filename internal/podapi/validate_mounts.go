package podapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mounts checks a container's mounts. For five fields, the server's paths omit the mount's index.
func (v *validator) mounts(c *corev1.Container, all *field.Path) {
	places := sets.New[string]()
	devices := map[string]string{} // of several devices of a volume, the last counts
	for _, device := range c.VolumeDevices {
		devices[device.Name] = device.DevicePath
	}
	for i, mount := range c.VolumeMounts {
		at := all.Index(i)
		v.notEmpty(at.Child("name"), mount.Name)
		if v.volumes[mount.Name] == nil {
			v.notFound(at.Child("name"), "")
		}
		v.notEmpty(at.Child("mountPath"), mount.MountPath)
		if places.Has(mount.MountPath) {
			v.invalid(at.Child("mountPath"), "is taken by another mount")
		}
		places.Insert(mount.MountPath)
		for name, devicePath := range devices {
			if name == mount.Name {
				v.invalid(at.Child("name"), "is used in volumeDevices too")
			}
			if devicePath == mount.MountPath {
				v.invalid(at.Child("mountPath"), "is used in volumeDevices too")
			}
		}
		v.subPaths(mount, at, all)
		v.propagation(mount, isPrivileged(c.SecurityContext), all.Child("mountPropagation"))
		v.recursiveReadOnly(mount, all.Child("recursiveReadOnly"))
		v.bindOptions(mount, at.Child("bindMountOptions"))
	}
}

func (v *validator) subPaths(mount corev1.VolumeMount, at, all *field.Path) {
	if mount.SubPath != "" {
		v.relativePath(mount.SubPath, all.Child("subPath"))
	}
	if mount.SubPathExpr == "" {
		return
	}
	if mount.SubPath != "" {
		v.invalid(at.Child("subPathExpr"), "cannot stand beside subPath")
	}
	v.relativePath(mount.SubPathExpr, all.Child("subPathExpr"))
}

func (v *validator) propagation(mount corev1.VolumeMount, privileged bool, at *field.Path) {
	if mount.MountPropagation == nil {
		return
	}
	oneOf(&v.faults, at, *mount.MountPropagation, corev1.MountPropagationBidirectional,
		corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	if *mount.MountPropagation == corev1.MountPropagationBidirectional && !privileged {
		v.forbidden(at, "only a privileged container may propagate its mounts to the node")
	}
}

func (v *validator) recursiveReadOnly(mount corev1.VolumeMount, at *field.Path) {
	if mount.RecursiveReadOnly == nil || *mount.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return
	}
	before := v.count
	oneOf(&v.faults, at, *mount.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled,
		corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if v.count > before {
		return
	}
	if !mount.ReadOnly {
		v.forbidden(at, "needs readOnly")
	}
	if mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone {
		v.forbidden(at, "excludes mountPropagation")
	}
}

func (v *validator) bindOptions(mount corev1.VolumeMount, at *field.Path) {
	options, _ := newerAt[[]string](v, at)
	for i, option := range options {
		oneOf(&v.faults, at.Index(i), option, "noexec", "nodev", "nosuid")
		if slices.Contains(options[:i], option) {
			v.duplicate(at.Index(i), "")
		}
	}
	if volume := v.volumes[mount.Name]; len(options) > 0 && volume != nil && volume.Image != nil {
		v.invalid(at, "is not for image volumes")
	}
}

// devices checks the volumes that a container uses as raw devices: claims, each at one path.
func (v *validator) devices(c *corev1.Container, all *field.Path) {
	names, places := sets.New[string](), sets.New[string]()
	mounts := map[string]string{} // of several mounts of a volume, the last counts
	for _, mount := range c.VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	for i, device := range c.VolumeDevices {
		at := all.Index(i)
		if v.notEmpty(at.Child("name"), device.Name) && names.Has(device.Name) {
			v.invalid(at.Child("name"), "is used twice")
		}
		names.Insert(device.Name)
		switch volume := v.volumes[device.Name]; {
		case volume == nil:
			v.notFound(at.Child("name"), "")
		case volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil:
			v.invalid(at.Child("name"), "must be a claim, to be a device")
		}
		v.notEmpty(at.Child("devicePath"), device.DevicePath)
		if places.Has(device.DevicePath) {
			v.invalid(at.Child("devicePath"), "is taken by another device")
		}
		if hasBackstep(device.DevicePath) {
			v.invalid(at.Child("devicePath"), "must not contain '..'")
		} else {
			places.Insert(device.DevicePath)
		}
		for name, mountPath := range mounts {
			if name == device.Name {
				v.invalid(at.Child("name"), "is used in volumeMounts too")
			}
			if mountPath == device.DevicePath {
				v.invalid(at.Child("devicePath"), "is used in volumeMounts too")
			}
		}
	}
}
