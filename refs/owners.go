package refs

import (
	"slices"

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
		s = &space[T]{name: name.Namespace, source: r.source.Objects(name.Namespace)}
		r.spaces[name.Namespace] = s
	}
	s.names++
	e := &entry[T]{name: name, space: s, told: untold}
	r.names[name] = e
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
	e.space.names--
	if r.weigh(e.space); e.space.names == 0 {
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
