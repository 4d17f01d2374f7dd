package podapi

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxSysctlName       = 253
	maxAppArmorProfile  = 4095
	capabilityOfEscapes = "CAP_SYS_ADMIN"
)

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// ipcSysctls are the parameters of an IPC namespace, besides those below fs.mqueue.
var ipcSysctls = sets.New("kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
	"kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg")

func isPrivileged(sc *corev1.SecurityContext) bool {
	return sc != nil && sc.Privileged != nil && *sc.Privileged
}

// ownUsers reports whether the pod has a user namespace of its own.
func (v *validator) ownUsers() bool {
	return v.spec.HostUsers != nil && !*v.spec.HostUsers
}

func (v *validator) podSecurity() {
	v.userNamespace()
	sc, at := v.spec.SecurityContext, specPath.Child("securityContext")
	if share := v.spec.ShareProcessNamespace; share != nil && *share && v.spec.HostPID {
		if v.release < R137 {
			v.invalid(at.Child("shareProcessNamespace"), "excludes hostPID")
		} else {
			v.invalid(specPath.Child("shareProcessNamespace"), "excludes hostPID")
		}
	}
	if sc == nil {
		return
	}
	v.userID(sc.RunAsUser, at.Child("runAsUser"))
	v.groupID(sc.RunAsGroup, at.Child("runAsGroup"))
	v.groupID(sc.FSGroup, at.Child("fsGroup"))
	for i := range sc.SupplementalGroups {
		v.groupID(&sc.SupplementalGroups[i], at.Child("supplementalGroups").Index(i))
	}
	v.sysctls(sc.Sysctls, at.Child("sysctls"))
	if policy := sc.FSGroupChangePolicy; policy != nil {
		oneOf(&v.faults, at.Child("fsGroupChangePolicy"), *policy, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)
	}
	if policy := sc.SupplementalGroupsPolicy; policy != nil {
		oneOf(&v.faults, at.Child("supplementalGroupsPolicy"), *policy,
			corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	if policy := sc.SELinuxChangePolicy; policy != nil { // MountOption needs a gate that is off
		oneOf(&v.faults, at.Child("seLinuxChangePolicy"), *policy, corev1.SELinuxChangePolicyRecursive)
	}
	v.seccomp(sc.SeccompProfile, at.Child("seccompProfile"))
	v.appArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))
	v.windowsOptions(sc.WindowsOptions, at.Child("windowsOptions"))
}

// userNamespace refuses host namespaces and raw devices to a pod with its own user namespace: its
// users are strangers there.
func (v *validator) userNamespace() {
	if !v.ownUsers() {
		return
	}
	for name, shared := range map[string]bool{
		"hostNetwork": v.spec.HostNetwork, "HostPID": v.spec.HostPID, "HostIPC": v.spec.HostIPC,
	} {
		if shared {
			v.forbidden(specPath.Child(name), "excludes hostUsers false")
		}
	}
	for at, c := range containers(v.spec) {
		if len(c.VolumeDevices) > 0 {
			v.forbidden(at.Child("volumeDevices"), "excludes hostUsers false")
		}
	}
}

func (v *validator) userID(id *int64, at *field.Path) {
	if id != nil {
		v.messages(at, validation.IsValidUserID(*id))
	}
}

func (v *validator) groupID(id *int64, at *field.Path) {
	if id != nil {
		v.messages(at, validation.IsValidGroupID(*id))
	}
}

func (v *validator) sysctls(sysctls []corev1.Sysctl, all *field.Path) {
	seen := sets.New[string]()
	for i, sysctl := range sysctls {
		at := all.Index(i).Child("name")
		switch {
		case !v.notEmpty(at, sysctl.Name):
		case len(sysctl.Name) > maxSysctlName || !sysctlName.MatchString(sysctl.Name):
			v.invalid(at, "must be the name of a sysctl")
		case seen.Has(sysctl.Name):
			v.duplicate(at, "")
		}
		seen.Insert(sysctl.Name)
		dotted := dottedSysctl(sysctl.Name)
		if v.spec.HostNetwork && strings.HasPrefix(dotted, "net.") {
			v.invalid(at, "excludes hostNetwork")
		}
		if v.spec.HostIPC && (ipcSysctls.Has(dotted) || strings.HasPrefix(dotted, "fs.mqueue.")) {
			v.invalid(at, "excludes hostIPC")
		}
	}
}

// dottedSysctl turns net/ipv4/conf/eth0.1/forwarding into net.ipv4.conf.eth0/1.forwarding. The
// first separator in the name decides which of the two forms it has.
func dottedSysctl(name string) string {
	name, _, _ = strings.Cut(name, "*")
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

func (v *validator) seccomp(profile *corev1.SeccompProfile, at *field.Path) {
	if profile == nil {
		return
	}
	setOneOf(&v.faults, at.Child("type"), profile.Type, corev1.SeccompProfileTypeLocalhost,
		corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	local := profile.Type == corev1.SeccompProfileTypeLocalhost
	switch at := at.Child("localhostProfile"); {
	case local && profile.LocalhostProfile == nil:
		v.required(at, "type Localhost needs it")
	case local:
		v.relativePath(*profile.LocalhostProfile, at)
	case profile.LocalhostProfile != nil:
		v.invalid(at, "is for type Localhost")
	}
	v.seccompOCI(profile.Type, at.Child("oci"))
}

func (v *validator) appArmor(profile *corev1.AppArmorProfile, at *field.Path) {
	if profile == nil {
		return
	}
	before := v.count
	setOneOf(&v.faults, at.Child("type"), profile.Type, corev1.AppArmorProfileTypeLocalhost,
		corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	if v.count > before {
		return
	}
	name, local := profile.LocalhostProfile, profile.Type == corev1.AppArmorProfileTypeLocalhost
	switch at := at.Child("localhostProfile"); {
	case local && (name == nil || *name == ""):
		v.required(at, "type Localhost needs it")
	case local:
		if strings.TrimSpace(*name) != *name {
			v.invalid(at, "must not begin or end with white space")
		}
		if len(*name) > maxAppArmorProfile {
			v.tooLong(at, "must fit into a path")
		}
	case name != nil:
		v.invalid(at, "is for type Localhost")
	}
}

func (v *validator) containerSecurity(sc *corev1.SecurityContext, at *field.Path) {
	if sc == nil {
		return
	}
	v.userID(sc.RunAsUser, at.Child("runAsUser"))
	v.groupID(sc.RunAsGroup, at.Child("runAsGroup"))
	if sc.ProcMount != nil {
		oneOf(&v.faults, at.Child("procMount"), *sc.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if *sc.ProcMount == corev1.UnmaskedProcMount && !v.ownUsers() {
			v.invalid(at.Child("procMount"), "Unmasked needs hostUsers false")
		}
	}
	v.seccomp(sc.SeccompProfile, at.Child("seccompProfile"))
	v.appArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))
	v.windowsOptions(sc.WindowsOptions, at.Child("windowsOptions"))
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation {
		return
	}
	if isPrivileged(sc) {
		v.invalid(at, "allowPrivilegeEscalation false excludes privileged")
	}
	if sc.Capabilities != nil {
		for _, capability := range sc.Capabilities.Add {
			if capability == capabilityOfEscapes {
				v.invalid(at, "allowPrivilegeEscalation false excludes CAP_SYS_ADMIN")
			}
		}
	}
}
