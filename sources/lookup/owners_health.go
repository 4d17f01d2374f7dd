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

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// ownersSource is the name of owners in Status.
const ownersSource = "owners"

// failedLocked notes a failure. Its problem has the class of the error, and neither its text nor a
// body.
func (o *owners) failedLocked(one *turn, err error) {
	resource, class := one.object.resource.GroupResource(), classOf(err)
	problem := fmt.Errorf("%s: cannot be read: %s", resource, strings.ReplaceAll(string(class), "_", " "))
	if class == reflector.Forbidden {
		problem = fmt.Errorf("%s: forbidden: the agent needs the verb get of it", resource)
	}
	problem = access.Mark(string(class), problem)
	if before := o.turns.resource(one.object).problem; before == nil || before.Error() != problem.Error() {
		o.log.Error(problem, "Problem")
	}
	o.errors++
	if class == reflector.Forbidden {
		o.turns.refused(one, time.Now(), problem)
	} else {
		o.turns.failed(one, time.Now(), problem, min(pace.RetryAfter(err), pace.ToldLimit))
	}
}

// reason is why the controller of an object is not known.
func (o *owners) reason(object owned) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.turns.objects[object.uid]
	switch {
	case one == nil:
		return fmt.Errorf("%s %s/%s is of no pod of this node", object.resource.GroupResource(), object.namespace, object.name)
	case one.state == gone:
		return one.gone
	}
	if problem := o.turns.resource(object).problem; problem != nil {
		return problem
	}
	return fmt.Errorf("%s %s/%s: the API server has not answered yet", object.resource.GroupResource(), object.namespace, object.name)
}

// status is the health of the owners. Its problems are those of owners that are to be asked for.
func (o *owners) status() sources.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := sources.Status{
		Source: ownersSource, Optional: true, Updates: map[sources.Op]int{},
		Report: sources.Report{Mode: "get by name", LastContact: o.contact, Errors: o.errors, Complete: true},
	}
	unknown := map[schema.GroupResource]int{}
	for _, one := range o.turns.objects {
		if one.state < known {
			unknown[one.object.resource.GroupResource()]++
		}
	}
	s.Seen = len(unknown) == 0
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(unknown), byName) {
		if of := o.turns.resources[name]; of != nil && of.problem != nil {
			s.Problems = append(s.Problems, fmt.Errorf("%w; the owners of %d are not known", of.problem, unknown[name]))
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
