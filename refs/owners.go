package refs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/reflector"
)

// Names are the objects that an owner refers to.
type Names []types.NamespacedName

// In returns names of one namespace; it is empty for objects in cluster scope. Empty names are left
// out.
func In(namespace string, names ...string) Names {
	all := make(Names, 0, len(names))
	for _, name := range names {
		if name != "" {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return all
}

// SetOwner states all names that an owner refers to, in place of those stated before. Without
// names, the owner is forgotten. owner is any text that is unique among owners, such as the UID of
// a pod.
//
// A name is followed as long as an owner has it. With its last owner its watch ends, and its object
// is dropped. The next Get of a name that is new to this owner reads the object again. Names that
// the owner had before stay as they are, so that SetOwner may be called for each event of a pod.
//
// SetOwner sends no request, and waits for none.
func (r *Refs[T]) SetOwner(owner types.UID, names Names) {
	wanted := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.owners[owner][:0]
	for _, e := range r.owners[owner] {
		if wanted[e.name] {
			kept = append(kept, e)
		} else {
			r.release(owner, e)
		}
	}
	clear(r.owners[owner][len(kept):])
	r.owners[owner] = kept
	r.addLocked(owner, names)
}

// AddNames adds to the names that an owner refers to.
func (r *Refs[T]) AddNames(owner types.UID, names Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(owner, names)
}

func (r *Refs[T]) addLocked(owner types.UID, names Names) {
	has := r.owners[owner]
	for _, name := range names {
		e := r.names[name]
		if name.Name == "" || e != nil && slices.Contains(e.owners, owner) {
			continue
		}
		if e == nil {
			e = r.register(name)
		}
		e.owners, has = append(e.owners, owner), append(has, e)
		if r.want(e); e.phase == idle {
			r.follow(e)
		}
	}
	if len(has) == 0 {
		delete(r.owners, owner)
		return
	}
	r.owners[owner] = has
}

// register makes the entry of a name that has no owner yet.
func (r *Refs[T]) register(name types.NamespacedName) *entry[T] {
	s := r.spaces[name.Namespace]
	if s == nil {
		s = &space[T]{name: name.Namespace, source: r.source.Objects(name.Namespace), entries: map[*entry[T]]struct{}{}}
		r.spaces[name.Namespace] = s
	}
	e := &entry[T]{name: name, space: s, told: untold}
	r.names[name], s.entries[e] = e, struct{}{}
	r.weigh(s)
	return e
}

// release takes an owner from a name. The caller takes the name from the owner.
func (r *Refs[T]) release(owner types.UID, e *entry[T]) {
	at := slices.Index(e.owners, owner)
	if e.owners = slices.Delete(e.owners, at, at+1); len(e.owners) > 0 {
		return
	}
	r.leave(e, idle, errReleased)
	r.alarm(e, reflector.OK, nil)
	delete(r.names, e.name)
	e.signal.Broadcast()
	var none T
	old := e.obj
	e.obj = none
	for reader := range r.readers {
		reader.note(e, old)
	}
	delete(e.space.entries, e)
	if r.weigh(e.space); len(e.space.entries) == 0 {
		delete(r.spaces, e.name.Namespace)
	}
}

// Owners returns the owners of a name, in order.
func (r *Refs[T]) Owners(namespace, name string) []types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.names[types.NamespacedName{Namespace: namespace, Name: name}]; e != nil {
		return e.ownerList()
	}
	return nil
}

func (e *entry[T]) ownerList() []types.UID {
	list := slices.Clone(e.owners)
	slices.Sort(list)
	return list
}

// SecretsOf returns the names of all Secrets that a pod mentions: by its volumes, projected
// volumes, environment, image pull secrets, and the secrets that its volumes' drivers need. It is
// the list by which the Node authorizer permits a kubelet to read them, except for those of its
// persistent volumes.
func SecretsOf(pod *corev1.Pod) Names { return In(pod.Namespace, mentionsOf(pod).secrets...) }

// ConfigMapsOf returns the names of all ConfigMaps that a pod mentions: by its volumes, projected
// volumes and environment.
func ConfigMapsOf(pod *corev1.Pod) Names { return In(pod.Namespace, mentionsOf(pod).configMaps...) }

// mentions are names, in the order of the pod. Doubles and empty names do no harm.
type mentions struct{ secrets, configMaps []string }

func mentionsOf(pod *corev1.Pod) (m mentions) {
	for i := range pod.Spec.ImagePullSecrets {
		m.secret(&pod.Spec.ImagePullSecrets[i])
	}
	for i := range pod.Spec.InitContainers {
		m.environment(pod.Spec.InitContainers[i].Env, pod.Spec.InitContainers[i].EnvFrom)
	}
	for i := range pod.Spec.Containers {
		m.environment(pod.Spec.Containers[i].Env, pod.Spec.Containers[i].EnvFrom)
	}
	for i := range pod.Spec.EphemeralContainers {
		m.environment(pod.Spec.EphemeralContainers[i].Env, pod.Spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range pod.Spec.Volumes {
		m.volume(&pod.Spec.Volumes[i].VolumeSource)
	}
	return m
}

func (m *mentions) secret(ref *corev1.LocalObjectReference) {
	if ref != nil {
		m.secrets = append(m.secrets, ref.Name)
	}
}

func (m *mentions) configMap(name string) { m.configMaps = append(m.configMaps, name) }

func (m *mentions) environment(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for i := range from {
		if source := from[i].SecretRef; source != nil {
			m.secret(&source.LocalObjectReference)
		}
		if source := from[i].ConfigMapRef; source != nil {
			m.configMap(source.Name)
		}
	}
	for i := range env {
		source := env[i].ValueFrom
		if source == nil {
			continue
		}
		if source.SecretKeyRef != nil {
			m.secret(&source.SecretKeyRef.LocalObjectReference)
		}
		if source.ConfigMapKeyRef != nil {
			m.configMap(source.ConfigMapKeyRef.Name)
		}
	}
}

func (m *mentions) volume(v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		m.secrets = append(m.secrets, v.Secret.SecretName)
	case v.ConfigMap != nil:
		m.configMap(v.ConfigMap.Name)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if source := v.Projected.Sources[i].Secret; source != nil {
				m.secret(&source.LocalObjectReference)
			}
			if source := v.Projected.Sources[i].ConfigMap; source != nil {
				m.configMap(source.Name)
			}
		}
	case v.CSI != nil:
		m.secret(v.CSI.NodePublishSecretRef)
	case v.AzureFile != nil:
		m.secrets = append(m.secrets, v.AzureFile.SecretName)
	case v.CephFS != nil:
		m.secret(v.CephFS.SecretRef)
	case v.Cinder != nil:
		m.secret(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		m.secret(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		m.secret(v.ISCSI.SecretRef)
	case v.RBD != nil:
		m.secret(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		m.secret(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		m.secret(v.StorageOS.SecretRef)
	}
}
