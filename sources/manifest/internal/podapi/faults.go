package podapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults collects what is wrong with a pod. It takes field paths and reasons but never the value
// that was refused: a field.Error prints its value, and a pod's fields hold credentials as often as
// not.
type faults struct {
	list  field.ErrorList // the first maxFaults of them
	count int             // of all
}

// maxFaults bounds what is kept for one pod: a manifest can have a fault in every other byte.
const maxFaults = 256

func (f *faults) keep(fault *field.Error) {
	f.count++
	if !f.full() {
		fault.BadValue = field.OmitValueType{}
		f.list = append(f.list, fault)
	}
}

// full says that more faults would not be kept, so that there is no use in looking for them.
func (f *faults) full() bool { return len(f.list) == maxFaults }

func (f *faults) add(kind field.ErrorType, at *field.Path, why string) {
	if f.full() {
		f.count++ // without a path, which costs more to make than all else here
		return
	}
	f.keep(&field.Error{Type: kind, Field: at.String(), Detail: why})
}

func (f *faults) required(at *field.Path, why string)  { f.add(field.ErrorTypeRequired, at, why) }
func (f *faults) invalid(at *field.Path, why string)   { f.add(field.ErrorTypeInvalid, at, why) }
func (f *faults) forbidden(at *field.Path, why string) { f.add(field.ErrorTypeForbidden, at, why) }
func (f *faults) duplicate(at *field.Path, why string) { f.add(field.ErrorTypeDuplicate, at, why) }
func (f *faults) notFound(at *field.Path, why string)  { f.add(field.ErrorTypeNotFound, at, why) }
func (f *faults) tooMany(at *field.Path, why string)   { f.add(field.ErrorTypeTooMany, at, why) }
func (f *faults) tooLong(at *field.Path, why string)   { f.add(field.ErrorTypeTooLong, at, why) }

// notEmpty reports whether a value is set, and faults the field when it is not.
func (f *faults) notEmpty(at *field.Path, value string) bool {
	if value == "" {
		f.required(at, "")
	}
	return value != ""
}

// messages turns the verdicts of apimachinery's string checks into faults of one field.
func (f *faults) messages(at *field.Path, verdicts []string) {
	for _, verdict := range verdicts {
		f.invalid(at, verdict)
	}
}

// adopt takes over the errors of an apimachinery check, without their values.
func (f *faults) adopt(errs field.ErrorList) {
	for _, err := range errs {
		f.keep(err)
	}
}

// oneOf faults a value that is not among those a field may have.
func oneOf[T ~string](f *faults, at *field.Path, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	f.keep(field.NotSupported(at, got, want))
}

// setOneOf is oneOf for a field that may not be empty either.
func setOneOf[T ~string](f *faults, at *field.Path, got T, want ...T) {
	if f.notEmpty(at, string(got)) {
		oneOf(f, at, got, want...)
	}
}

// atMostOne counts the members of a union that are set; the second and later ones are faults.
type atMostOne struct {
	f    *faults
	why  string
	seen bool
}

// take reports whether the member at this path is the first one set, and so the one to look into.
func (u *atMostOne) take(at *field.Path) bool {
	if u.seen {
		u.f.forbidden(at, u.why)
		return false
	}
	u.seen = true
	return true
}
