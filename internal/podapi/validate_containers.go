package podapi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxRestartRules = 20
	maxExitCodes    = 255
)

// ephemeralFields are the fields that an ephemeral container may set.
var ephemeralFields = []string{
	"Name", "Image", "Command", "Args", "WorkingDir", "EnvFrom", "Env", "VolumeMounts", "VolumeDevices",
	"TerminationMessagePath", "TerminationMessagePolicy", "ImagePullPolicy", "SecurityContext", "Stdin", "StdinOnce", "TTY",
}

func (v *validator) allContainers() {
	if len(v.spec.Containers) == 0 {
		v.required(specPath.Child("containers"), "")
	}
	names := sets.New[string]()
	ports := sets.New[string]()
	for i := range v.spec.Containers {
		if v.full() {
			return
		}
		c, at := &v.spec.Containers[i], specPath.Child("containers").Index(i)
		v.container(c, at)
		v.uniqueName(c.Name, names, at)
		v.lifecycle(c.Lifecycle, at.Child("lifecycle"))
		v.probes(c, at)
		v.restartPolicy(c, at)
		v.hostPorts(c.Ports, ports, at)
	}
	for i := range v.spec.InitContainers {
		if v.full() {
			return
		}
		c, at := &v.spec.InitContainers[i], specPath.Child("initContainers").Index(i)
		v.container(c, at)
		v.uniqueName(c.Name, names, at)
		// Init containers run in turn, so only a container's own ports can conflict. The server's
		// path always names the first one.
		v.hostPorts(c.Ports, sets.New[string](), specPath.Child("initContainers").Index(0))
		v.initContainer(c, at)
	}
	v.ephemeralContainers(names)
	for at, c := range containers(v.spec) {
		v.fileKeyVolumes(c, at)
	}
}

// container checks the rules that all kinds of containers share.
func (v *validator) container(c *corev1.Container, at *field.Path) {
	if v.notEmpty(at.Child("name"), c.Name) {
		v.messages(at.Child("name"), utilvalidation.IsDNS1123Label(c.Name))
	}
	if v.notEmpty(at.Child("image"), c.Image) && strings.TrimSpace(c.Image) != c.Image {
		v.invalid(at.Child("image"), "must not begin or end with white space")
	}
	setOneOf(&v.faults, at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	v.pullPolicy(c.ImagePullPolicy, at.Child("imagePullPolicy"))
	v.ports(c.Ports, at.Child("ports"))
	v.env(c.Env, at.Child("env"))
	v.envFrom(c.EnvFrom, at.Child("envFrom"))
	v.mounts(c, at.Child("volumeMounts"))
	v.devices(c, at.Child("volumeDevices"))
	v.resources(&c.Resources, at.Child("resources"), v.containerResourceName)
	v.resizePolicy(c.ResizePolicy, at.Child("resizePolicy"))
	v.containerSecurity(c.SecurityContext, at.Child("securityContext"))
}

// uniqueName faults a duplicate name. The caller faults a missing one.
func (v *validator) uniqueName(name string, names sets.Set[string], at *field.Path) {
	if name == "" {
		return
	}
	if names.Has(name) {
		v.duplicate(at.Child("name"), "")
	}
	names.Insert(name)
}

func (v *validator) pullPolicy(policy corev1.PullPolicy, at *field.Path) {
	setOneOf(&v.faults, at, policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func (v *validator) initContainer(c *corev1.Container, at *field.Path) {
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
		// the rules themselves stay unchecked
		v.required(at.Child("restartPolicy"), "restartPolicyRules need one")
	} else {
		v.restartPolicy(c, at)
	}
	if isSidecar(c) {
		v.lifecycle(c.Lifecycle, at.Child("lifecycle"))
		v.probes(c, at)
		return
	}
	for name, set := range map[string]bool{
		"lifecycle":      c.Lifecycle != nil,
		"livenessProbe":  c.LivenessProbe != nil,
		"readinessProbe": c.ReadinessProbe != nil,
		"startupProbe":   c.StartupProbe != nil,
	} {
		if set {
			v.forbidden(at.Child(name), "an init container may have it only with restartPolicy Always")
		}
	}
	for i, policy := range c.ResizePolicy {
		if policy.RestartPolicy == corev1.RestartContainer {
			v.invalid(at.Child("resizePolicy").Index(i).Child("restartPolicy"), "an init container is not restarted to be resized")
		}
	}
}

// ephemeralContainers are for running pods only; the server reports that after all other faults.
func (v *validator) ephemeralContainers(names sets.Set[string]) {
	if len(v.spec.EphemeralContainers) == 0 {
		return
	}
	targets := names.Clone()
	for i := range v.spec.EphemeralContainers {
		ephemeral, at := &v.spec.EphemeralContainers[i], specPath.Child("ephemeralContainers").Index(i)
		v.container((*corev1.Container)(&ephemeral.EphemeralContainerCommon), at)
		v.uniqueName(ephemeral.Name, names, at)
		if target := ephemeral.TargetContainerName; target != "" && !targets.Has(target) {
			v.notFound(at.Child("targetContainerName"), "")
		}
		v.onlyFields(ephemeral.EphemeralContainerCommon, at, "an ephemeral container cannot have it", ephemeralFields...)
		for j, mount := range ephemeral.VolumeMounts {
			at := at.Child("volumeMounts").Index(j)
			if mount.SubPath != "" {
				v.forbidden(at.Child("subPath"), "an ephemeral container cannot have it")
			}
			if mount.SubPathExpr != "" {
				v.forbidden(at.Child("subPathExpr"), "an ephemeral container cannot have it")
			}
		}
	}
	v.forbidden(specPath.Child("ephemeralContainers"), "a pod gets them when it runs, not when it is created")
}

func (v *validator) restartPolicy(c *corev1.Container, at *field.Path) {
	switch {
	case c.RestartPolicy != nil:
		oneOf(&v.faults, at.Child("restartPolicy"), *c.RestartPolicy, corev1.ContainerRestartPolicyAlways,
			corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	case len(c.RestartPolicyRules) > 0:
		v.required(at.Child("restartPolicy"), "restartPolicyRules need one")
	}
	rules := at.Child("restartPolicyRules")
	if len(c.RestartPolicyRules) > maxRestartRules {
		v.tooMany(rules, fmt.Sprintf("may have %d rules", maxRestartRules))
	}
	for i, rule := range c.RestartPolicyRules {
		at := rules.Index(i)
		oneOf(&v.faults, at.Child("action"), rule.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		if rule.ExitCodes == nil {
			v.required(at.Child("exitCodes"), "")
			continue
		}
		oneOf(&v.faults, at.Child("exitCodes", "operator"), rule.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if len(rule.ExitCodes.Values) > maxExitCodes {
			v.tooMany(at.Child("exitCodes", "values"), fmt.Sprintf("may have %d codes", maxExitCodes))
		}
	}
}

func (v *validator) ports(ports []corev1.ContainerPort, at *field.Path) {
	names := sets.New[string]()
	for i, port := range ports {
		at := at.Index(i)
		if port.Name != "" {
			verdicts := utilvalidation.IsValidPortName(port.Name)
			v.messages(at.Child("name"), verdicts)
			if len(verdicts) == 0 && names.Has(port.Name) {
				v.duplicate(at.Child("name"), "")
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			v.required(at.Child("containerPort"), "")
		} else {
			v.messages(at.Child("containerPort"), utilvalidation.IsValidPortNum(int(port.ContainerPort)))
		}
		if port.HostPort != 0 {
			v.messages(at.Child("hostPort"), utilvalidation.IsValidPortNum(int(port.HostPort)))
		}
		setOneOf(&v.faults, at.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
}

// hostPorts claims a container's ports on the node, and faults those already taken.
func (v *validator) hostPorts(ports []corev1.ContainerPort, taken sets.Set[string], at *field.Path) {
	for i, port := range ports {
		if port.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if taken.Has(key) {
			v.duplicate(at.Child("ports").Index(i).Child("hostPort"), "")
		}
		taken.Insert(key)
	}
}

func (v *validator) resizePolicy(policies []corev1.ContainerResizePolicy, at *field.Path) {
	seen := sets.New[corev1.ResourceName]()
	for i, policy := range policies {
		if seen.Has(policy.ResourceName) {
			v.duplicate(at.Index(i), "")
		}
		seen.Insert(policy.ResourceName)
		setOneOf(&v.faults, at, policy.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		setOneOf(&v.faults, at, policy.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if v.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy != corev1.NotRequired {
			v.invalid(at, "must be NotRequired in a pod whose restartPolicy is Never")
		}
	}
}
