package lookup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// ownersSource is the name of owners in Status.
const ownersSource = "owners"

// ownerHealth counts the requests by their outcome.
type ownerHealth struct {
	contact time.Time // of the last answer
	errors  int
	faults  map[schema.GroupResource]*ownerFault
}

// ownerFault is the last failure of a resource, since when none has been answered.
type ownerFault struct {
	problem error
	until   time.Time // when a forbidden resource is asked for again
}

// answeredLocked notes an answer, which ends the fault of its resource.
func (o *owners) answeredLocked(resource schema.GroupResource) {
	o.health.contact = time.Now()
	if fault := o.health.faults[resource]; fault != nil {
		o.log.Info("Problem is gone", "problem", fault.problem.Error())
		delete(o.health.faults, resource)
	}
}

// fail notes a failure, and reports whether the whole resource is to be left alone. Its problem has
// the class of the error, and neither its text nor a body.
func (o *owners) fail(object owned, err error) (forbidden bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	resource, class := object.resource.GroupResource(), classOf(err)
	fault := &ownerFault{}
	if forbidden = class == reflector.Forbidden; forbidden {
		fault.until = time.Now().Add(forbiddenRetry)
		fault.problem = fmt.Errorf("%s: forbidden: the agent needs the verb get of it", resource)
	} else {
		fault.problem = fmt.Errorf("%s: cannot be read: %s", resource, strings.ReplaceAll(string(class), "_", " "))
	}
	fault.problem = access.Mark(string(class), fault.problem)
	if before := o.health.faults[resource]; before == nil || before.problem.Error() != fault.problem.Error() {
		o.log.Error(fault.problem, "Problem")
	}
	o.health.errors++
	o.health.faults[resource] = fault
	return forbidden
}

// status is the health of the owners. Its problems are those of owners that are not known.
func (o *owners) status() sources.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := sources.Status{
		Source: ownersSource, Optional: true, Updates: map[sources.Op]int{},
		Report: sources.Report{Mode: "get by name", LastContact: o.health.contact, Errors: o.health.errors, Complete: true},
	}
	known, unknown := o.known.Load(), map[schema.GroupResource]int{}
	for uid, object := range o.used {
		if _, ok := known.Get(textKey(string(uid))); !ok {
			unknown[object.resource.GroupResource()]++
		}
	}
	s.Seen = len(unknown) == 0
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, resource := range slices.SortedFunc(maps.Keys(unknown), byName) {
		if fault := o.health.faults[resource]; fault != nil {
			s.Problems = append(s.Problems, fmt.Errorf("%w; the owners of %d are not known", fault.problem, unknown[resource]))
		}
	}
	if o.saver != nil {
		if err := o.saver.Problem(); err != nil {
			s.Problems = append(s.Problems, err)
		}
	}
	return s
}

// ownerState is the controllers of objects as a checkpoint has them: a PartialObjectMetadataList
// with the UID and the controller of each object.
type ownerState []metav1.PartialObjectMetadata

var ownerContent = checkpoint.Content[ownerState]{
	Magic: "TRBOWNS\x01", Suffix: ".owners", Encode: encodeOwners, Decode: decodeOwners,
}

func encodeOwners(state ownerState) ([]byte, error) {
	return (&metav1.PartialObjectMetadataList{Items: state}).Marshal()
}

func decodeOwners(body []byte) (ownerState, error) {
	var list metav1.PartialObjectMetadataList
	if err := list.Unmarshal(body); err != nil {
		return nil, errors.New("its owners cannot be decoded")
	}
	return list.Items, nil
}

// restoreLocked reads the checkpoint of an earlier run. It is saved from now on.
func (o *owners) restoreLocked(file checkpoint.File[ownerState]) {
	o.saver = checkpoint.NewSaver(file, o.log)
	o.restored = map[types.UID]*metav1.OwnerReference{}
	for _, object := range o.saver.Restore() {
		o.restored[object.UID] = metav1.GetControllerOf(&object)
	}
}

// saveLocked offers all known controllers, and those of the checkpoint that may yet be used.
func (o *owners) saveLocked() {
	if o.saver == nil {
		return
	}
	state := ownerState{}
	add := func(uid types.UID, above *metav1.OwnerReference) {
		object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if above != nil {
			object.OwnerReferences = []metav1.OwnerReference{*above}
		}
		state = append(state, object)
	}
	for uid, above := range o.known.Load().All() {
		add(types.UID(uid), above)
	}
	for uid, above := range o.restored {
		add(uid, above)
	}
	o.saver.Offer(state)
}
