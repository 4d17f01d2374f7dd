package lookup

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
)

// value is something by which a pod is found.
type value struct {
	kind    valueKind
	text    string     // of all kinds but an address
	address netip.Addr // of an address alone
}

type valueKind int

// The numbers are those of checkpoints.
const (
	nameValue valueKind = iota
	uidValue            // and the cgroup with it
	containerValue
	addressValue
)

// appendValues appends all values of a pod with this key, namespace/name.
func (p *Pod) appendValues(values []value, key string) []value {
	values = append(values, value{kind: nameValue, text: key})
	several := p.Live != nil || p.Mirror != nil // states, which have values in common
	add := func(v value) {
		if (v.text != "" || v.kind == addressValue) && !(several && slices.Contains(values, v)) {
			values = append(values, v)
		}
	}
	for uid := range p.uids {
		add(value{kind: uidValue, text: uid})
	}
	for pod := range p.states {
		for i := range pod.Status.PodIPs {
			if address, err := netip.ParseAddr(pod.Status.PodIPs[i].IP); err == nil && !pod.Spec.HostNetwork {
				add(value{kind: addressValue, address: address.Unmap()})
			}
		}
		for c := range live.Containers(&pod.Status) {
			add(value{kind: containerValue, text: withoutRuntime(c.ContainerID)})
			if last := c.LastTerminationState.Terminated; last != nil {
				add(value{kind: containerValue, text: withoutRuntime(last.ContainerID)})
			}
		}
	}
	return values
}

// states yields the pod as each of its sources has it.
func (p *Pod) states(yield func(*corev1.Pod) bool) {
	for _, pod := range []*corev1.Pod{p.Pod, p.Live, p.Mirror} {
		if pod != nil && !yield(pod) {
			return
		}
	}
}

// uids yields the UIDs of these states. A mirror names the UID by which the kubelet runs the pod.
func (p *Pod) uids(yield func(string) bool) {
	for pod := range p.states {
		if !yield(string(pod.UID)) || !yield(pod.Annotations[manifest.MirrorAnnotation]) {
			return
		}
	}
}

// shares reports whether two states are of one pod: a source that is gone takes its UID with it.
func (p *Pod) shares(next *Pod) bool {
	for uid := range p.uids {
		for other := range next.uids {
			if uid == other && uid != "" {
				return true
			}
		}
	}
	return false
}

// finished reports whether the pod will never run again.
func (p *Pod) finished() bool {
	status := p.Status()
	return live.Final(&status)
}

// withoutRuntime is the ID of a container without the name of its runtime.
func withoutRuntime(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
