package clientgo

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/informer"
)

// Reported is an informer of a factory, as [Report] finds it.
type Reported struct {
	Type    reflect.Type // of its objects, such as *corev1.Pod
	Objects int          // held
	Synced  bool
	// Ours has the health of an informer of this module. It is nil for one of client-go's, which a
	// constructor of the program has made: see [FromClientset].
	Ours *informer.Status
}

// String is one line for a person.
func (r Reported) String() string {
	if r.Ours == nil {
		return fmt.Sprintf("%v: %d objects, client-go's: call clientgo.FromClientset in its constructor", r.Type, r.Objects)
	}
	return fmt.Sprintf("%v: %d objects, %v", r.Type, r.Objects, r.Ours.Verdict(0).State())
}

// Report lists the informers that a factory has started, by the name of their type: which ones are
// ours, and what each holds. The factory is one of package informers, or a generated one that
// [Factory] has filled. It does not block.
func Report[F started[N], N any](factory F) (all []Reported) {
	stop := make(chan struct{})
	close(stop)
	var none N // it is not called: the factory has the informer
	for of, synced := range factory.WaitForCacheSync(stop) {
		made := factory.InformerFor(reflect.New(of.Elem()).Interface().(runtime.Object), none)
		r := Reported{Type: of, Synced: synced}
		if ours, ok := StatusOf(made); ok {
			r.Ours, r.Objects = &ours, ours.Objects
		} else {
			r.Objects = len(made.GetStore().ListKeys())
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Reported) int { return cmp.Compare(a.Type.String(), b.Type.String()) })
	return all
}

// started is the part of a generated factory that tells what it has started.
type started[N any] interface {
	generated[N]
	WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool
}
