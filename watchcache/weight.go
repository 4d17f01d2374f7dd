package watchcache

import (
	"encoding/json"
	"math/rand/v2"

	"github.com/tributary-go/tributary/store"
)

// scale estimates the bytes that objects take, by their length on the wire. To measure an object
// costs more than all the rest of a write, so that only a random sample is measured: the others
// count as what the sample was lately.
type scale[T store.Object] struct {
	skip    int // how many objects are not measured
	typical int64
}

const (
	// weighEvery is how many objects there are to one of the sample, in the mean.
	weighEvery = 64
	// bareWeight is what a change and an object without content take.
	bareWeight = 1024
)

// weigh is the estimate for one object. One goroutine at a time may weigh.
func (s *scale[T]) weigh(obj T) int64 {
	if s.skip > 0 {
		s.skip--
		return s.typical
	}
	s.skip = rand.IntN(2*weighEvery - 1)
	exact := bareWeight + size(obj)
	if s.typical == 0 {
		s.typical = exact
	}
	s.typical += (exact - s.typical) / 8
	return max(s.typical, exact)
}

// size is the length of an object on the wire.
func size(obj any) int64 {
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	document, err := json.Marshal(obj)
	if err != nil {
		return 0
	}
	return int64(len(document))
}
