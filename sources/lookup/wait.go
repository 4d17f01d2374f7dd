package lookup

import (
	"context"
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/trie"
)

// Sight is what a program has seen of a container that has just begun. Leave out what is not known.
type Sight struct {
	ContainerID string     // as for [Lookup.ByContainerID]
	UID         types.UID  // as for [Lookup.ByUID]
	Cgroup      string     // as for [Lookup.ByCgroup]
	IP          netip.Addr // as for [Lookup.ByIP]
}

// longestWait is longer than a kubelet takes to tell a container that has begun, and bounds a wait
// for one that no source will ever have.
const longestWait = 10 * time.Second

// Wait finds the pod of a container that may be newer than the newest state of the sources. The
// first field of the Sight that is given decides: Wait returns the pod that has that value now, and
// runs. Until there is one it waits, and wakes at each change of the pods. At the end of ctx, or
// after ten seconds, it returns the best answer so far: the pod that the first field finds that
// finds any, which may not have the container yet, or may have ended. It is nil if none does.
func (l *Lookup) Wait(ctx context.Context, seen Sight) *Pod {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	var pod *Pod
	l.fresh.Until(ctx.Done(), func() (certain bool) {
		pod, certain = l.sighted(seen)
		return certain
	})
	return pod
}

// WaitOwner is [Lookup.Owner] for the first line of a new pod. While the API server has not
// answered the first request for the pod's ReplicaSet or Job, it waits, until the end of ctx, for
// ten seconds at most. It waits for no API server that fails, nor for an owner that is gone.
func (l *Lookup) WaitOwner(ctx context.Context, pod *corev1.Pod) (owner metav1.OwnerReference, known bool) {
	if l.owners == nil {
		return l.Owner(pod)
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	object, _ := ownedBy(pod)
	l.owners.told.Until(ctx.Done(), func() bool {
		owner, known = l.Owner(pod)
		return known || !errors.Is(l.owners.reason(object), errUnanswered)
	})
	return owner, known
}

// sighted is the best answer at present. It is certain if nothing better can come.
func (l *Lookup) sighted(seen Sight) (best *Pod, certain bool) {
	group, _, inPod := lastCgroup(seen.Cgroup)
	address := seen.IP.As16()
	first := true
	for _, by := range []struct {
		given bool
		kind  valueKind
		text  string
		find  func() *Pod
	}{
		{seen.ContainerID != "", containerValue, withoutRuntime(seen.ContainerID), func() *Pod { return l.ByContainerID(seen.ContainerID) }},
		{seen.UID != "", uidValue, string(seen.UID), func() *Pod { return l.ByUID(seen.UID) }},
		{inPod, cgroupValue, string(group[:]), func() *Pod { return l.ByCgroup(seen.Cgroup) }},
		{seen.IP.IsValid(), addressValue, string(address[:]), func() *Pod { return l.ByIP(seen.IP) }},
	} {
		if !by.given {
			continue
		}
		if pod := l.running(by.kind, by.text); pod != nil && first {
			return pod, true
		}
		if first = false; best == nil {
			best = by.find()
		}
	}
	return best, first // without a field there is nothing to wait for
}

// running is the pod that has a value now, and runs.
func (l *Lookup) running(kind valueKind, text string) *Pod {
	found, _ := l.now.Load().Get(trie.HashString(text), text)
	one := firstOf(found, kind)
	if one == nil || !one.lost.IsZero() {
		return nil
	}
	if pod := one.now.Load(); pod.age().stage == running {
		return pod
	}
	return nil
}
