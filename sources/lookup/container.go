package lookup

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Container is a container, with its pod.
type Container struct {
	Pod  *Pod
	Kind ContainerKind
	// Status is the newest status of the container of its name: with the name, the image and the
	// state. If the container was restarted, it is that of its successor, and
	// LastTerminationState may have the container. Zero if the pod has no status of it any more.
	Status corev1.ContainerStatus
}

// ContainerKind tells in which list of its pod a container is.
type ContainerKind string

// The kinds of containers.
const (
	Regular   ContainerKind = "container"
	Init      ContainerKind = "init container"
	Ephemeral ContainerKind = "ephemeral container"
)

const (
	// wholeID is the length of the ID of a container: 32 bytes in hexadecimal.
	wholeID = 64
	// shortestID is what container runtimes show of an ID at least.
	shortestID = 12
)

// Container finds a container by its ID, as [Lookup.ByContainerID] finds its pod. The ID may be
// cut, as by a tool with 31 characters for it: to twelve characters or more, if they are those of
// one container alone. For a cut one, all containers of the node are looked at.
func (l *Lookup) Container(id string) (found Container, ok bool) {
	id = withoutRuntime(id)
	pod := l.ByContainerID(id)
	if pod == nil && len(id) >= shortestID && len(id) < wholeID {
		id, pod = l.cut(id)
	}
	if pod == nil {
		return Container{}, false
	}
	return pod.container(id)
}

// cut finds the one container whose ID begins so. A container that is there counts before those
// that are past.
func (l *Lookup) cut(start string) (id string, pod *Pod) {
	var past string
	present, ended := 0, 0
	for text, entries := range l.now.Load().All() {
		if !strings.HasPrefix(text, start) {
			continue
		}
		switch one := firstOf(entries, containerValue); {
		case one == nil || l.expired(one.lost):
		case one.lost.IsZero():
			present, id = present+1, text
		default:
			ended, past = ended+1, text
		}
	}
	switch {
	case present == 1:
	case present == 0 && ended == 1:
		id = past
	default:
		return "", nil
	}
	return id, l.byText(containerValue, id)
}

// container finds the container in the states of its pod. The newest status may not have it any
// more, or not yet.
func (p *Pod) container(id string) (Container, bool) {
	for _, status := range p.statuses() {
		for _, list := range []struct {
			kind ContainerKind
			all  []corev1.ContainerStatus
		}{{Regular, status.ContainerStatuses}, {Init, status.InitContainerStatuses}, {Ephemeral, status.EphemeralContainerStatuses}} {
			for _, one := range list.all {
				last := one.LastTerminationState.Terminated
				if withoutRuntime(one.ContainerID) == id || last != nil && withoutRuntime(last.ContainerID) == id {
					return Container{Pod: p, Kind: list.kind, Status: one}, true
				}
			}
		}
	}
	// Its status has gone, and with it the name of the container.
	return Container{Pod: p}, true
}

// statuses are those of all states, the newest first.
func (p *Pod) statuses() []corev1.PodStatus {
	all := []corev1.PodStatus{p.Status()}
	for pod := range p.states {
		all = append(all, pod.Status)
	}
	return all
}
