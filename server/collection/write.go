package collection

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/store"
)

// Create stores a new object under a new UID, creation time and resource version, and generation 1
// if the server counts changes of its kind. If there is no name, one is made from
// metadata.generateName. The status is stored as given, unless the writer is a client. Errors:
// AlreadyExists; Invalid for a breach of the API server's rules; 500 with a resource version, as
// from there.
func (c *Collection[T]) Create(obj T) (created T, err error) {
	next := object.Copy(obj)
	c.fill(next)
	c.dropTwinOwners(next)
	if c.client {
		next = c.ownership.created(next, c.options.Manager, c.Kind().Empty())
		c.dropStatus(next)
	}
	return c.create(next)
}

// dropStatus drops the status of a client's new object, unless the kind keeps it.
func (c *Collection[T]) dropStatus(obj T) {
	if c.HasStatus() && !c.rules.CreateStatus {
		object.Status.Clear(obj)
	}
}

// create stores a new object with its field owners, under a generated name if it has none.
func (c *Collection[T]) create(next T) (created T, err error) {
	prefix := next.GetGenerateName()
	if next.GetName() != "" || prefix == "" {
		return c.insert(next)
	}
	for attempt := 1; ; attempt++ {
		named := object.Copy(next)
		named.SetName(prefix[:min(len(prefix), maxPrefix)] + rand.String(generatedLength))
		created, err = c.insert(named)
		if !apierrors.IsAlreadyExists(err) || attempt == nameAttempts {
			return created, err
		}
	}
}

// insert stores a new object under its name.
func (c *Collection[T]) insert(next T) (created T, err error) {
	if err := c.prepare(next); err != nil {
		return created, err
	}
	return c.storage.Write(store.KeyOf(next), func(_ T, found bool) (Decision[T], error) {
		if found {
			return Decision[T]{}, apierrors.NewAlreadyExists(c.Kind().GroupResource(), next.GetName())
		}
		return Decision[T]{Op: Put, Object: next}, nil
	})
}

// prepare gives a new object that has its name the fields of the server, and checks it.
func (c *Collection[T]) prepare(next T) error {
	c.Kind().SetKind(next)
	switch version, err := parseVersion(next.GetResourceVersion()); {
	case err == nil && version != 0 && !c.options.DryRun: // the storage refuses it
		return apierror.Unclassified("resourceVersion should not be set on objects to be created")
	default:
		next.SetResourceVersion("")
	}
	next.SetUID(uuid.NewUUID())
	next.SetCreationTimestamp(now())
	next.SetDeletionTimestamp(nil)
	next.SetDeletionGracePeriodSeconds(nil)
	next.SetSelfLink("")
	if c.countsFrom(next) {
		next.SetGeneration(1)
	}
	if admit := c.clientRules().Create; admit != nil {
		if err := admit(next); err != nil {
			return err
		}
	}
	var none T
	if complete := c.clientRules().Complete; complete != nil {
		complete(next, none)
	}
	if err := c.invalid(next, c.checkNew(next)); err != nil {
		return err
	}
	c.warnOfFinalizers(next, nil)
	return nil
}

const (
	// generatedLength is how many characters a generated name gets.
	generatedLength = 5
	// maxPrefix is how much of generateName counts: with it, the name is a DNS label.
	maxPrefix = 63 - generatedLength
	// nameAttempts is how many names are generated for an object if they are taken, as in the API
	// server.
	nameAttempts = 8
)

// countsFrom reports whether a new object gets a generation.
func (c *Collection[T]) countsFrom(obj T) bool {
	_, hasSpec := object.Spec.Of(obj)
	return c.rules.Generation == CountAll || c.rules.Generation == CountSpec && hasSpec
}

// Update replaces an object but for its status, which stays (see [Collection.UpdateStatus]), as do
// UID, creation and deletion time. The generation grows when the spec changes. Where nothing
// changes, nothing is written. An object that is being deleted goes when its last finalizer is
// dropped. Errors: NotFound; Conflict when obj has a resource version or a UID that is not the
// stored one; Invalid for a breach of the API server's rules.
func (c *Collection[T]) Update(obj T) (T, error) {
	return c.replace(obj, update, func(stored, next T) T { return c.whole(stored, next) })
}

// whole is the next state of an object by an update.
func (c *Collection[T]) whole(stored, next T) T {
	next = c.ownership.track(stored, next, c.options.Manager, c.ownership.whole)
	c.keepStatus(stored, next)
	return next
}

// keepStatus gives next the stored status, if that is written apart.
func (c *Collection[T]) keepStatus(stored, next T) {
	switch {
	case c.rules.PlainStatus:
	case c.rules.keepStatus != nil:
		c.rules.keepStatus(next, stored)
	default:
		object.Status.Move(next, stored)
	}
}

// UpdateStatus replaces the status of an object and, if it is of a built-in kind, its labels and
// annotations. Errors are those of [Collection.Update].
func (c *Collection[T]) UpdateStatus(obj T) (T, error) {
	return c.replace(obj, update, func(stored, next T) T { return c.statusOnly(stored, next) })
}

// statusOnly is the next state of an object by an update of its status.
func (c *Collection[T]) statusOnly(stored, next T) T {
	return c.withStatus(stored, c.ownership.track(stored, next, c.options.Manager, c.ownership.status))
}

// withStatus is stored with the fields that a write of the status takes from next.
func (c *Collection[T]) withStatus(stored, next T) T {
	whole := object.Copy(stored)
	object.Status.Move(whole, next)
	if c.rules.BuiltIn {
		whole.SetLabels(next.GetLabels())
		whole.SetAnnotations(next.GetAnnotations())
		whole.SetFinalizers(next.GetFinalizers())
	}
	whole.SetUID(next.GetUID())
	whole.SetResourceVersion(next.GetResourceVersion())
	whole.SetManagedFields(next.GetManagedFields())
	return whole
}

// way is how a new state comes about.
type way int

const (
	update way = iota // the client has sent all of it
	patch             // it was made from the stored state
)

// replace writes the result of merge for the stored object and a copy of obj.
func (c *Collection[T]) replace(obj T, by way, merge func(stored, next T) T) (result T, err error) {
	return c.write(obj.GetNamespace(), obj.GetName(), func(stored T, found bool) (d Decision[T], err error) {
		if err := c.there(found, obj.GetName()); err != nil {
			return d, err
		}
		return c.replaced(stored, object.Copy(obj), by, merge)
	})
}

// replaced decides on a stored object if the result of merge for it and next is its new state.
func (c *Collection[T]) replaced(stored, next T, by way, merge func(stored, next T) T) (d Decision[T], err error) {
	c.Kind().SetKind(next)
	c.fill(next)
	c.dropTwinOwners(next)
	if err := c.checkVersion(stored, next, by); err != nil {
		return d, err
	}
	return c.updated(stored, merge(stored, next))
}

// write is a write of the storage. If that takes the object away, it returns the state that the
// writer has asked for.
func (c *Collection[T]) write(namespace, name string, decide func(stored T, found bool) (Decision[T], error)) (result T, err error) {
	var last Decision[T]
	result, err = c.storage.Write(c.Kind().Key(namespace, name), func(stored T, found bool) (d Decision[T], err error) {
		last, err = decide(stored, found)
		return last, err
	})
	if err == nil && last.Op == Remove {
		wanted := last.wanted
		wanted.SetResourceVersion(result.GetResourceVersion())
		return wanted, nil
	}
	return result, err
}

// updated decides on a stored object if next is its new state.
func (c *Collection[T]) updated(stored, next T) (d Decision[T], err error) {
	c.Kind().SetKind(next)
	keepSystemFields(stored, next)
	if complete := c.clientRules().Complete; complete != nil {
		complete(next, stored)
	}
	if err := c.invalid(next, c.checkNext(next, stored)); err != nil {
		return d, err
	}
	c.warnOfFinalizers(next, stored)
	next.SetResourceVersion(stored.GetResourceVersion())
	keepTimes(stored, next)
	if apiequality.Semantic.DeepEqual(stored, next) {
		return Decision[T]{Op: Keep, Object: stored}, nil
	}
	if c.counts(stored, next) {
		next.SetGeneration(stored.GetGeneration() + 1)
	}
	if c.released(stored, next) {
		// Watchers are told the last state that was there.
		return Decision[T]{Op: Remove, Object: object.Copy(stored), wanted: next}, nil
	}
	return Decision[T]{Op: Put, Object: next}, nil
}

// counts reports whether the generation grows.
func (c *Collection[T]) counts(stored, next T) bool {
	switch {
	case c.rules.Generation == CountAll:
		return !object.SameBody(stored, next, !c.rules.PlainStatus)
	case c.rules.Generation == CountNothing && stored.GetGeneration() == 0:
		return false
	}
	return !object.Spec.Same(stored, next)
}

// checkVersion compares an update with the object that it claims to replace.
func (c *Collection[T]) checkVersion(stored, obj T, by way) error {
	if uid := obj.GetUID(); by == update && uid != "" && uid != stored.GetUID() {
		return c.conflict(obj.GetName(), fmt.Errorf("the UID %s in the update is not the stored one, %s: the object "+
			"was deleted and created again", uid, stored.GetUID()))
	}
	version, err := parseVersion(obj.GetResourceVersion())
	if err != nil {
		return apierror.Unclassified("the resource version %q is not a number", obj.GetResourceVersion())
	}
	if version == 0 {
		if c.client && !c.rules.UnconditionalUpdate {
			return c.invalid(obj, needsVersion())
		}
		obj.SetResourceVersion(stored.GetResourceVersion())
		return nil
	}
	if obj.GetResourceVersion() != stored.GetResourceVersion() {
		return c.conflict(obj.GetName(), errors.New("the object has been modified; please apply your changes to "+
			"the latest version and try again"))
	}
	return nil
}

// parseVersion reads a resource version; empty means none, as zero does.
func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// keepSystemFields copies the fields that an update cannot change. It leaves those that a client
// may not even try to change, for the validation to find.
func keepSystemFields[T store.Object](stored, next T) {
	if next.GetUID() == "" {
		next.SetUID(stored.GetUID())
	}
	next.SetCreationTimestamp(stored.GetCreationTimestamp())
	if stored.GetDeletionTimestamp() != nil {
		next.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	}
	if stored.GetDeletionGracePeriodSeconds() != nil && next.GetDeletionGracePeriodSeconds() == nil {
		next.SetDeletionGracePeriodSeconds(stored.GetDeletionGracePeriodSeconds())
	}
	next.SetGeneration(stored.GetGeneration())
	next.SetSelfLink("")
}

// dropTwinOwners leaves one of equal owner references, and warns of the others.
func (c *Collection[T]) dropTwinOwners(obj T) {
	given := obj.GetOwnerReferences()
	if len(given) < 2 {
		return
	}
	var kept []metav1.OwnerReference
	var twins []string
	for _, reference := range given {
		same := func(other metav1.OwnerReference) bool { return apiequality.Semantic.DeepEqual(reference, other) }
		if slices.ContainsFunc(kept, same) {
			twins = append(twins, string(reference.UID))
			continue
		}
		kept = append(kept, reference)
	}
	if len(twins) > 0 {
		obj.SetOwnerReferences(kept)
		c.warn(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, " +
			"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " +
			strings.Join(twins, ", "))
	}
}

// released reports whether an update drops the last finalizer of an object that waits for nothing
// else.
func (c *Collection[T]) released(stored, next T) bool {
	grace := stored.GetDeletionGracePeriodSeconds()
	return stored.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0) && c.Held(stored) && !c.Held(next)
}

// now has the precision of the wire.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
