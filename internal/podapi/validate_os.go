package podapi

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxCredentialSpec = 64 << 10
	maxWindowsDomain  = 255
	maxWindowsUser    = 104
)

const windowsLabel = `[[:alnum:]](?:[[:alnum:]-]{0,61}[[:alnum:]])?`

// The names of domains and users that Active Directory accepts.
var (
	windowsNetBIOS  = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	windowsDNS      = regexp.MustCompile(`^` + windowsLabel + `(?:\.` + windowsLabel + `)*$`)
	windowsControl  = regexp.MustCompile(`[[:cntrl:]]`)
	windowsOnlyDots = regexp.MustCompile(`^[. ]+$`)
)

func (v *validator) isWindows() bool {
	return v.spec.OS != nil && v.spec.OS.Name == corev1.Windows
}

// operatingSystem checks that a pod which names its system has no settings of the other one.
func (v *validator) operatingSystem() {
	v.hostProcess()
	if v.spec.OS == nil {
		return
	}
	switch v.spec.OS.Name {
	case corev1.Linux:
		v.notOnLinux()
	case corev1.Windows:
		v.notOnWindows()
	case "":
		v.required(specPath.Child("os", "name"), "")
	default:
		oneOf(&v.faults, specPath.Child("os"), v.spec.OS.Name, corev1.Linux, corev1.Windows)
	}
}

func (v *validator) notOnLinux() {
	if sc := v.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		v.forbidden(specPath.Child("securityContext", "windowsOptions"), "is not for Linux")
	}
	for at, c := range containers(v.spec) {
		if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil {
			v.forbidden(at.Child("securityContext", "windowsOptions"), "is not for Linux")
		}
	}
}

func (v *validator) notOnWindows() {
	v.forbidSet(specPath, map[string]bool{
		"hostUsers":             v.spec.HostUsers != nil,
		"hostPID":               v.spec.HostPID,
		"hostIPC":               v.spec.HostIPC,
		"shareProcessNamespace": v.spec.ShareProcessNamespace != nil,
	})
	if sc := v.spec.SecurityContext; sc != nil {
		v.forbidSet(specPath.Child("securityContext"), map[string]bool{
			"appArmorProfile":          sc.AppArmorProfile != nil,
			"seLinuxOptions":           sc.SELinuxOptions != nil,
			"seccompProfile":           sc.SeccompProfile != nil,
			"fsGroup":                  sc.FSGroup != nil,
			"fsGroupChangePolicy":      sc.FSGroupChangePolicy != nil,
			"sysctls":                  len(sc.Sysctls) > 0,
			"runAsUser":                sc.RunAsUser != nil,
			"runAsGroup":               sc.RunAsGroup != nil,
			"supplementalGroups":       sc.SupplementalGroups != nil,
			"supplementalGroupsPolicy": sc.SupplementalGroupsPolicy != nil,
			"seLinuxChangePolicy":      sc.SELinuxChangePolicy != nil,
		})
	}
	for at, c := range containers(v.spec) {
		if sc := c.SecurityContext; sc != nil {
			v.forbidSet(at.Child("securityContext"), map[string]bool{
				"appArmorProfile":          sc.AppArmorProfile != nil,
				"seLinuxOptions":           sc.SELinuxOptions != nil,
				"seccompProfile":           sc.SeccompProfile != nil,
				"capabilities":             sc.Capabilities != nil,
				"readOnlyRootFilesystem":   sc.ReadOnlyRootFilesystem != nil,
				"privileged":               sc.Privileged != nil,
				"allowPrivilegeEscalation": sc.AllowPrivilegeEscalation != nil,
				"procMount":                sc.ProcMount != nil,
				"runAsUser":                sc.RunAsUser != nil,
				"runAsGroup":               sc.RunAsGroup != nil,
			})
		}
	}
}

func (v *validator) forbidSet(at *field.Path, fields map[string]bool) {
	for name, set := range fields {
		if set {
			v.forbidden(at.Child(name), "is not for Windows")
		}
	}
}

// hostProcess checks Windows containers that run as processes of the node: all of them, or none.
func (v *validator) hostProcess() {
	var pod *bool
	if sc := v.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		pod = sc.WindowsOptions.HostProcess
	}
	inside, outside := 0, 0
	for at, c := range containers(v.spec) {
		own := pod
		if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			own = sc.WindowsOptions.HostProcess
		}
		if pod != nil && *own != *pod {
			v.invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), "differs from the pod's")
		}
		if own != nil && *own {
			outside++
		} else {
			inside++
		}
	}
	if outside == 0 {
		return
	}
	if inside > 0 {
		v.invalid(specPath, "mixes host process containers with others")
	}
	if !v.spec.HostNetwork {
		v.invalid(specPath.Child("hostNetwork"), "host process containers need it")
	}
}

func (v *validator) windowsOptions(options *corev1.WindowsSecurityContextOptions, at *field.Path) {
	if options == nil {
		return
	}
	if name := options.GMSACredentialSpecName; name != nil {
		v.messages(at.Child("gmsaCredentialSpecName"), validation.IsDNS1123Subdomain(*name))
	}
	if spec := options.GMSACredentialSpec; spec != nil && (*spec == "" || len(*spec) > maxCredentialSpec) {
		v.invalid(at.Child("gmsaCredentialSpec"), "must have between a byte and 64 KiB")
	}
	if options.RunAsUserName != nil && !isWindowsUser(*options.RunAsUserName) {
		v.invalid(at.Child("runAsUserName"), "must be a Windows user, with a domain or without")
	}
}

// isWindowsUser accepts USER or DOMAIN\USER.
func isWindowsUser(name string) bool {
	user := name
	if domain, rest, ok := strings.Cut(name, `\`); ok {
		if len(domain) > maxWindowsDomain || !windowsNetBIOS.MatchString(domain) && !windowsDNS.MatchString(domain) {
			return false
		}
		user = rest
	}
	return user != "" && len(user) <= maxWindowsUser && !windowsControl.MatchString(name) &&
		!windowsOnlyDots.MatchString(user) && !strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`)
}
