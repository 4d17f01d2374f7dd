package reflector

import (
	"errors"
	"reflect"
	"sync"
)

// keepers has the stores that a reflector keeps now: two would undo each other's lists.
var keepers sync.Map

// keeps claims a store for one run. A store that is no pointer has no identity to claim.
func keeps(st any) (free func(), err error) {
	if reflect.ValueOf(st).Kind() != reflect.Pointer {
		return func() {}, nil
	}
	if _, taken := keepers.LoadOrStore(st, true); taken {
		return nil, errors.New("reflector: another reflector keeps this store: give each its own, or join several collections by informer.NewUnion")
	}
	return func() { keepers.Delete(st) }, nil
}
