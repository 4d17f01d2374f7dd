package lookup

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
)

// tables are immutable, and so are the lists in them. The first pod of a list counts.
type tables struct {
	names      trie.Map[string, *Pod] // by namespace/name; without the ended pods
	uids       trie.Map[string, []*Pod]
	containers trie.Map[string, []*Pod]
	addresses  trie.Map[netip.Addr, []*Pod]
	cgroups    trie.Map[cgroup, []*Pod]
	owned      trie.Map[string, []*Pod] // by the UID of their controller
}

// textKey is the hash and the key of a text.
func textKey(text string) (hash uint64, key string) { return trie.HashString(text), text }

// edit is a change of tables on its way.
type edit struct {
	tables
	owner       uint64
	controllers map[types.UID]owned // of the pods that were changed; nil without owners
}

// replace makes pod the pod of a name. It returns the pod that had the name, and whether that pod
// is gone: no source has a pod of the name any more, or the name has gone to another pod.
func (e *edit) replace(key string, pod sources.MergedPod) (old *Pod, gone bool) {
	names := trie.Writer[string, *Pod]{Hash: trie.HashString, Owner: e.owner}
	hash, key := textKey(key)
	old, known := e.names.Get(hash, key)
	if known {
		e.each(old, without)
	}
	if pod.Pod == nil {
		e.names, _, _ = names.Delete(e.names, hash, key)
		return old, known
	}
	next := &Pod{MergedPod: pod}
	e.names, _, _ = names.Set(e.names, hash, key, next)
	e.each(next, with)
	return old, known && !old.shares(next)
}

// each changes the lists under all values of a pod.
func (e *edit) each(p *Pod, change func([]*Pod, *Pod) []*Pod) {
	texts := trie.Writer[string, []*Pod]{Hash: trie.HashString, Owner: e.owner}
	addresses := trie.Writer[netip.Addr, []*Pod]{Hash: trie.Hash[netip.Addr], Owner: e.owner}
	cgroups := trie.Writer[cgroup, []*Pod]{Hash: trie.Hash[cgroup], Owner: e.owner}
	for uid := range p.uids {
		e.uids = changed(texts, e.uids, uid, p, change)
		if group, ok := cgroupOfUID(uid); ok {
			e.cgroups = changed(cgroups, e.cgroups, group, p, change)
		}
	}
	for pod := range p.states {
		if object, ok := ownedBy(pod); ok && e.controllers != nil {
			e.controllers[object.uid] = object
			e.owned = changed(texts, e.owned, string(object.uid), p, change)
		}
		for i := range pod.Status.PodIPs {
			if address, err := netip.ParseAddr(pod.Status.PodIPs[i].IP); err == nil && !pod.Spec.HostNetwork {
				e.addresses = changed(addresses, e.addresses, address.Unmap(), p, change)
			}
		}
		for c := range live.Containers(&pod.Status) {
			e.containers = changed(texts, e.containers, withoutRuntime(c.ContainerID), p, change)
			if last := c.LastTerminationState.Terminated; last != nil {
				e.containers = changed(texts, e.containers, withoutRuntime(last.ContainerID), p, change)
			}
		}
	}
}

// changed changes the list under one value. The zero value finds no pod.
func changed[K comparable](w trie.Writer[K, []*Pod], in trie.Map[K, []*Pod], key K, p *Pod,
	change func([]*Pod, *Pod) []*Pod) trie.Map[K, []*Pod] {
	if key == *new(K) {
		return in
	}
	found, _ := in.Get(w.Hash(key), key)
	if next := change(found, p); len(next) > 0 {
		in, _, _ = w.Set(in, w.Hash(key), key, next)
	} else if found != nil {
		in, _, _ = w.Delete(in, w.Hash(key), key)
	}
	return in
}

// with is found with p before all pods that it takes precedence over.
func with(found []*Pod, p *Pod) []*Pod {
	if slices.Contains(found, p) {
		return found
	}
	at := slices.IndexFunc(found, func(other *Pod) bool { return p.precedence() <= other.precedence() })
	if at < 0 {
		at = len(found)
	}
	return slices.Insert(slices.Clone(found), at, p)
}

// without is found without p.
func without(found []*Pod, p *Pod) []*Pod {
	return slices.DeleteFunc(slices.Clone(found), func(other *Pod) bool { return other == p })
}

// precedence orders the pods of one value: a pod that runs, one that is finished, one that is gone.
// The address of a finished pod may be another one's already.
func (p *Pod) precedence() int {
	if !p.Ended.IsZero() {
		return 2
	}
	if status := p.Status(); live.Final(&status) {
		return 1
	}
	return 0
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

// withoutRuntime is the ID of a container without the name of its runtime.
func withoutRuntime(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
