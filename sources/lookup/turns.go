package lookup

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pace"
)

const (
	// ownersAtOnce is how many requests are under way for a resource that is answered. Any other
	// resource has one, which shows whether it is answered again.
	ownersAtOnce = 8
	// An object that fails beside others that are answered is asked for ever later.
	objectRetry, objectMaxRetry = time.Second, 5 * time.Minute
	// So is a resource of which nothing is answered. Its objects wait, so the longest pause is
	// short.
	resourceRetry, resourceMaxRetry = time.Second, 30 * time.Second
	// forbiddenRetry is how long a forbidden resource is left alone: a person has to mend it.
	forbiddenRetry = 10 * time.Minute
	// never is longer than any pause.
	never = time.Hour
)

// turns decides which object is asked for, and when. It has no clock and no lock.
type turns struct {
	objects   map[types.UID]*turn // of the pods of the node
	resources map[schema.GroupResource]*resource
	count     int // of the objects that have come
	probes    int // that have failed
}

// turn is an object on its way to an answer.
type turn struct {
	object   owned
	number   int // in the order of their coming
	state    turnState
	due      time.Time
	failures int   // while the resource was answered
	probed   int   // the number of its last probe, while nothing of the resource is answered
	gone     error // why its controller cannot be told
}

// turnState is how far a turn is.
type turnState int

const (
	waiting turnState = iota
	asking
	probing // asking for the sake of the resource, too: nothing of it is answered
	known
	gone // and its controller is not known
)

// resource is how the API server serves one resource.
type resource struct {
	state    resourceState
	asking   int
	failures int // in a row
	until    time.Time
	problem  error // of the last failure
}

type resourceState int

const (
	untried resourceState = iota
	answered
	failing
	forbidden
)

func newTurns() turns {
	return turns{objects: map[types.UID]*turn{}, resources: map[schema.GroupResource]*resource{}}
}

func (t *turns) resource(of owned) *resource {
	name := of.resource.GroupResource()
	if t.resources[name] == nil {
		t.resources[name] = &resource{}
	}
	return t.resources[name]
}

// add notes an object that pods have as their controller. It reports whether it is a new one.
func (t *turns) add(object owned) (one *turn, isNew bool) {
	if one = t.objects[object.uid]; one != nil {
		one.object = one.object.with(object)
		return one, false
	}
	t.count++
	one = &turn{object: object, number: t.count}
	t.objects[object.uid] = one
	return one, true
}

// drop forgets an object. An answer to a request that is under way is told to the turn all the
// same.
func (t *turns) drop(uid types.UID) { delete(t.objects, uid) }

// next begins the request for the object with the newest pod, of all that are due. Without one,
// wait is the time until one is.
func (t *turns) next(now time.Time) (next *turn, wait time.Duration) {
	wait = never
	for _, one := range t.objects {
		of := t.resource(one.object)
		if one.state != waiting || of.asking >= of.atOnce() {
			continue
		}
		due := one.due
		if of.until.After(due) {
			due = of.until
		}
		switch {
		case due.After(now):
			wait = min(wait, due.Sub(now))
		case next == nil || one.before(next):
			next = one
		}
	}
	if next != nil {
		of := t.resource(next.object)
		next.state = asking
		if of.state != answered {
			next.state = probing
		}
		of.asking++
	}
	return next, wait
}

func (r *resource) atOnce() int {
	if r.state == answered {
		return ownersAtOnce
	}
	return 1
}

// before orders by the newest pod, and those of one second by their coming. An object that failed
// as a probe gives way to the others: the fault may be its own.
func (one *turn) before(other *turn) bool {
	if one.probed != other.probed {
		return one.probed < other.probed
	}
	if order := one.object.newest.Compare(other.object.newest); order != 0 {
		return order > 0
	}
	return one.number > other.number
}

// answered ends a turn: the controller is known, or will never be. It returns the problem that is
// over, if there was one.
func (t *turns) answered(one *turn, state turnState) (over error) {
	of := t.resource(one.object)
	one.state = state
	of.asking--
	over = of.problem
	if of.state != answered {
		for _, other := range t.objects {
			if t.resource(other.object) == of {
				other.probed = 0
			}
		}
	}
	*of = resource{state: answered, asking: of.asking}
	return over
}

// failed ends a request without an answer. pause is how long the server has asked to be left alone.
// A failure beside answers is the object's, and the resource pauses for a second. While nothing is
// answered, the pause of the resource grows, and another object is the next probe.
func (t *turns) failed(one *turn, now time.Time, problem error, pause time.Duration) {
	of := t.resource(one.object)
	of.asking--
	of.problem = problem
	if one.state == probing {
		t.probes++
		one.probed = t.probes
	} else {
		one.failures++
		one.due = now.Add(later(one.failures, objectRetry, objectMaxRetry))
	}
	if one.state == probing || of.state == answered {
		of.state = failing
		of.failures++
		of.until = now.Add(max(pause, later(of.failures, resourceRetry, resourceMaxRetry)))
	}
	one.state = waiting
}

// refused leaves a whole resource alone.
func (t *turns) refused(one *turn, now time.Time, problem error) {
	of := t.resource(one.object)
	one.state = waiting
	of.asking--
	of.state, of.until, of.problem = forbidden, now.Add(forbiddenRetry), problem
}

// later is the pause after some failures in a row. The agents of a cluster fail at one moment, and
// must not all come back at one.
func later(failures int, first, longest time.Duration) time.Duration {
	pause := pace.Doubled(first, longest, failures-1)
	return pause + pace.Jitter(pause/4)
}
