package podapi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// handler is the action of a probe or a hook: exactly one of five.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func (v *validator) probes(c *corev1.Container, at *field.Path) {
	v.probe(c.LivenessProbe, at.Child("livenessProbe"))
	v.probe(c.ReadinessProbe, at.Child("readinessProbe"))
	v.probe(c.StartupProbe, at.Child("startupProbe"))
	v.onlyOneSuccess(c.LivenessProbe, at.Child("livenessProbe"))
	v.onlyOneSuccess(c.StartupProbe, at.Child("startupProbe"))
	if c.ReadinessProbe != nil && c.ReadinessProbe.TerminationGracePeriodSeconds != nil {
		v.invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), "a readiness probe ends nothing")
	}
}

func (v *validator) onlyOneSuccess(probe *corev1.Probe, at *field.Path) {
	if probe != nil && probe.SuccessThreshold != 1 {
		v.invalid(at.Child("successThreshold"), "must be 1")
	}
}

func (v *validator) probe(probe *corev1.Probe, at *field.Path) {
	if probe == nil {
		return
	}
	v.handler(handler{exec: probe.Exec, http: probe.HTTPGet, tcp: probe.TCPSocket, grpc: probe.GRPC}, at)
	v.notNegative(int64(probe.InitialDelaySeconds), at.Child("initialDelaySeconds"))
	v.notNegative(int64(probe.TimeoutSeconds), at.Child("timeoutSeconds"))
	v.notNegative(int64(probe.PeriodSeconds), at.Child("periodSeconds"))
	v.notNegative(int64(probe.SuccessThreshold), at.Child("successThreshold"))
	v.notNegative(int64(probe.FailureThreshold), at.Child("failureThreshold"))
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		v.invalid(at.Child("terminationGracePeriodSeconds"), "must be greater than zero")
	}
}

func (v *validator) notNegative(n int64, at *field.Path) {
	if n < 0 {
		v.invalid(at, "must not be negative")
	}
}

func (v *validator) lifecycle(lifecycle *corev1.Lifecycle, at *field.Path) {
	if lifecycle == nil {
		return
	}
	for name, hook := range map[string]*corev1.LifecycleHandler{
		"postStart": lifecycle.PostStart, "preStop": lifecycle.PreStop,
	} {
		if hook != nil {
			v.handler(handler{exec: hook.Exec, http: hook.HTTPGet, tcp: hook.TCPSocket, sleep: hook.Sleep}, at.Child(name))
		}
	}
	if lifecycle.StopSignal != nil {
		v.stopSignal(*lifecycle.StopSignal, at.Child("stopSignal"))
	}
}

func (v *validator) handler(h handler, at *field.Path) {
	union := atMostOne{f: &v.faults, why: "there can be one handler"}
	if h.exec != nil && union.take(at.Child("exec")) && len(h.exec.Command) == 0 {
		v.required(at.Child("exec", "command"), "")
	}
	if h.http != nil && union.take(at.Child("httpGet")) {
		v.httpGet(h.http, at.Child("httpGet"))
	}
	if h.tcp != nil && union.take(at.Child("tcpSocket")) {
		v.portOrName(h.tcp.Port, at.Child("tcpSocket", "port"))
	}
	if h.grpc != nil && union.take(at.Child("grpc")) {
		v.portOrName(intstr.FromInt32(h.grpc.Port), at.Child("grpc", "port"))
		if mode, ok := newerAt[string](v, at.Child("grpc", "mode")); ok {
			oneOf(&v.faults, at.Child("grpc", "mode"), mode, "Plaintext", "TLS")
		}
	}
	if h.sleep != nil && union.take(at.Child("sleep")) {
		if grace := v.spec.TerminationGracePeriodSeconds; grace != nil && (h.sleep.Seconds < 0 || h.sleep.Seconds > *grace) {
			v.invalid(at.Child("sleep"), "must last between zero and terminationGracePeriodSeconds")
		}
	}
	if !union.seen {
		v.required(at, "needs a handler")
	}
}

func (v *validator) httpGet(get *corev1.HTTPGetAction, at *field.Path) {
	v.notEmpty(at.Child("path"), get.Path)
	v.portOrName(get.Port, at.Child("port"))
	oneOf(&v.faults, at.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, header := range get.HTTPHeaders {
		v.messages(at.Child("httpHeaders"), validation.IsHTTPHeaderName(header.Name))
	}
	switch protocol, ok := newerAt[string](v, at.Child("protocol")); {
	case !ok:
	case protocol != "HTTP2":
		oneOf(&v.faults, at.Child("protocol"), protocol, "HTTP1", "HTTP2")
	case get.Scheme != corev1.URISchemeHTTP:
		v.invalid(at.Child("protocol"), "HTTP2 is spoken without TLS only")
	case get.Host != "":
		v.invalid(at.Child("host"), "excludes HTTP2")
	}
}

func (v *validator) portOrName(port intstr.IntOrString, at *field.Path) {
	if port.Type == intstr.Int {
		v.messages(at, validation.IsValidPortNum(port.IntValue()))
	} else {
		v.messages(at, validation.IsValidPortName(port.StrVal))
	}
}

// windowsSignals are the two signals with a counterpart on Windows.
var windowsSignals = []corev1.Signal{corev1.SIGKILL, corev1.SIGTERM}

var linuxSignals = []corev1.Signal{
	corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE,
	corev1.SIGHUP, corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE,
	corev1.SIGPOLL, corev1.SIGPROF, corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP,
	corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP, corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG,
	corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM, corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ,
	corev1.SIGRTMIN, corev1.SIGRTMINPLUS1, corev1.SIGRTMINPLUS2, corev1.SIGRTMINPLUS3, corev1.SIGRTMINPLUS4,
	corev1.SIGRTMINPLUS5, corev1.SIGRTMINPLUS6, corev1.SIGRTMINPLUS7, corev1.SIGRTMINPLUS8, corev1.SIGRTMINPLUS9,
	corev1.SIGRTMINPLUS10, corev1.SIGRTMINPLUS11, corev1.SIGRTMINPLUS12, corev1.SIGRTMINPLUS13, corev1.SIGRTMINPLUS14,
	corev1.SIGRTMINPLUS15, corev1.SIGRTMAXMINUS14, corev1.SIGRTMAXMINUS13, corev1.SIGRTMAXMINUS12,
	corev1.SIGRTMAXMINUS11, corev1.SIGRTMAXMINUS10, corev1.SIGRTMAXMINUS9, corev1.SIGRTMAXMINUS8,
	corev1.SIGRTMAXMINUS7, corev1.SIGRTMAXMINUS6, corev1.SIGRTMAXMINUS5, corev1.SIGRTMAXMINUS4,
	corev1.SIGRTMAXMINUS3, corev1.SIGRTMAXMINUS2, corev1.SIGRTMAXMINUS1, corev1.SIGRTMAX,
}

func (v *validator) stopSignal(signal corev1.Signal, at *field.Path) {
	switch {
	case v.spec.OS == nil:
		v.forbidden(at, "needs the name of an operating system")
	case v.spec.OS.Name == corev1.Windows:
		oneOf(&v.faults, at, signal, windowsSignals...)
	case v.spec.OS.Name == corev1.Linux:
		oneOf(&v.faults, at, signal, linuxSignals...)
	}
}
