package podapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// faults collects what is wrong with a pod. It takes field paths and reasons but never the value that was refused:
// a field.Error prints its value, and a pod's fields hold credentials as often as not.
type faults struct {
	list field.ErrorList
}

func (f *faults) add(kind field.ErrorType, at *field.Path, why string) {
	f.list = append(f.list, &field.Error{Type: kind, Field: at.String(), BadValue: field.OmitValueType{}, Detail: why})
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
		clean := *err
		clean.BadValue = field.OmitValueType{}
		f.list = append(f.list, &clean)
	}
}

// oneOf faults a value that is not among those a field may have.
func oneOf[T ~string](f *faults, at *field.Path, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	fault := field.NotSupported(at, got, want)
	fault.BadValue = field.OmitValueType{}
	f.list = append(f.list, fault)
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
