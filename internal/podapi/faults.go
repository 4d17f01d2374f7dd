package podapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults collects the faults of a pod: field paths and reasons, never the refused value. A
// field.Error prints its value, and a pod's fields often hold credentials.
type faults struct {
	list  field.ErrorList // the first maxFaults
	count int             // including those not in list
}

// maxFaults bounds the faults kept per pod: a manifest can have a fault in every other byte.
const maxFaults = 256

func (f *faults) keep(fault *field.Error) {
	f.count++
	if !f.full() {
		fault.BadValue = field.OmitValueType{}
		f.list = append(f.list, fault)
	}
}

// full reports whether further faults would be dropped, so the search for them can stop.
func (f *faults) full() bool { return len(f.list) == maxFaults }

func (f *faults) add(kind field.ErrorType, at *field.Path, why string) {
	if f.full() {
		f.count++ // skip the path, the costliest part
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

// notEmpty reports whether a value is set, and faults the field if not.
func (f *faults) notEmpty(at *field.Path, value string) bool {
	if value == "" {
		f.required(at, "")
	}
	return value != ""
}

// messages adds the results of apimachinery's string checks as faults of one field.
func (f *faults) messages(at *field.Path, verdicts []string) {
	for _, verdict := range verdicts {
		f.invalid(at, verdict)
	}
}

// adopt adds the errors of an apimachinery check without their values.
func (f *faults) adopt(errs field.ErrorList) {
	for _, err := range errs {
		f.keep(err)
	}
}

// oneOf faults a value that is not in want.
func oneOf[T ~string](f *faults, at *field.Path, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	f.keep(field.NotSupported(at, got, want))
}

// setOneOf is oneOf for a field that must also be set.
func setOneOf[T ~string](f *faults, at *field.Path, got T, want ...T) {
	if f.notEmpty(at, string(got)) {
		oneOf(f, at, got, want...)
	}
}

// atMostOne counts the members of a union that are set, and faults all but the first.
type atMostOne struct {
	f    *faults
	why  string
	seen bool
}

// take reports whether the member at this path is the first one set, and therefore to be checked.
func (u *atMostOne) take(at *field.Path) bool {
	if u.seen {
		u.f.forbidden(at, u.why)
		return false
	}
	u.seen = true
	return true
}
