package lookup

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pace"
)

const (
	// ownersAtOnce is how many requests are under way for a resource that is answered. Any other
	// resource has one, which shows whether it is answered again.
	ownersAtOnce = 8
	// An object that fails beside others that are answered is asked for ever later. So is a
	// resource of which nothing is answered. Its objects wait, so the longest pause is short.
	firstRetry, objectMaxRetry, resourceMaxRetry = time.Second, 5 * time.Minute, 30 * time.Second
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
	probed   int   // the number of its last probe that failed
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
	answered bool // the last request
	asking   int
	asker    pace.Asker
	until    time.Time
	problem  error // of the last failure
}

func newTurns() turns {
	return turns{objects: map[types.UID]*turn{}, resources: map[schema.GroupResource]*resource{}}
}

func (t *turns) resource(of owned) *resource {
	name := of.resource.GroupResource()
	if t.resources[name] == nil {
		t.resources[name] = &resource{asker: pace.Asker{Initial: firstRetry, Limit: resourceMaxRetry, Optional: true}}
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

// next begins the request for the object with the newest pod, of all that are due. Without one,
// wait is the time until one is.
func (t *turns) next(now time.Time) (next *turn, wait time.Duration) {
	wait = never
	for _, one := range t.objects {
		of := t.resource(one.object)
		if one.state != waiting || of.asking > 0 && !of.answered || of.asking == ownersAtOnce {
			continue
		}
		switch pause := max(one.due.Sub(now), of.until.Sub(now)); {
		case pause > 0:
			wait = min(wait, pause)
		case next == nil || one.before(next):
			next = one
		}
	}
	if next != nil {
		of := t.resource(next.object)
		next.state = asking
		if !of.answered {
			next.state = probing
		}
		of.asking++
	}
	return next, wait
}

// before orders by the newest pod, and those of one second by their coming. An object that failed
// as a probe gives way to the others: the fault may be its own.
func (one *turn) before(other *turn) bool {
	return cmp.Or(cmp.Compare(one.probed, other.probed), other.object.newest.Compare(one.object.newest), cmp.Compare(other.number, one.number)) < 0
}

// answered ends a turn: the controller is known, or will never be. It returns the problem that is
// over, if there was one. The object may have been dropped meanwhile.
func (t *turns) answered(one *turn, state turnState) (over error) {
	of := t.resource(one.object)
	one.state, over = state, of.problem
	of.answered, of.asking, of.until, of.problem = true, of.asking-1, time.Time{}, nil
	of.asker.Alive(0)
	return over
}

// failed ends a request without an answer, which the server may have told to come back later.
// A failure beside answers is the object's, and the resource pauses for a second. While nothing is
// answered, the pause of the resource grows, and another object is the next probe.
func (t *turns) failed(one *turn, now time.Time, problem error, answer pace.Answer, told time.Duration) {
	of := t.resource(one.object)
	of.asking--
	of.problem = problem
	if one.state == probing {
		t.probes++
		one.probed = t.probes
	} else {
		one.failures++
		pause := pace.Doubled(firstRetry, objectMaxRetry, one.failures-1)
		one.due = now.Add(pause + pace.Jitter(pause/4)) // agents fail at one moment
	}
	if one.state == probing || of.answered {
		of.answered = false
		of.until = now.Add(of.asker.Next(answer, told))
	}
	one.state = waiting
}
