package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/collection"
)

// decodeQuery reads the query with the API machinery's own decoder.
func decodeQuery(c call, into runtime.Object) error {
	if err := scheme.ParameterCodec.DecodeParameters(c.request.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// refused is the 422 for options that are out of range.
func refused(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", errs)
}

// createOptions, updateOptions and patchOptions read a client's options for its write. Errors:
// 400 for a parameter that cannot be read, 422 for one that is out of range.
func createOptions(c call) (o collection.WriteOptions, err error) {
	var given metav1.CreateOptions
	if err := decodeQuery(c, &given); err != nil {
		return o, err
	}
	o = writeOptions(c, given.FieldManager, given.DryRun, given.FieldValidation)
	return o, refused("CreateOptions", validation.ValidateCreateOptions(&given))
}

func updateOptions(c call) (o collection.WriteOptions, err error) {
	var given metav1.UpdateOptions
	if err := decodeQuery(c, &given); err != nil {
		return o, err
	}
	o = writeOptions(c, given.FieldManager, given.DryRun, given.FieldValidation)
	return o, refused("UpdateOptions", validation.ValidateUpdateOptions(&given))
}

func patchOptions(c call, kind types.PatchType) (o collection.WriteOptions, force bool, err error) {
	var given metav1.PatchOptions
	if err := decodeQuery(c, &given); err != nil {
		return o, false, err
	}
	o = writeOptions(c, given.FieldManager, given.DryRun, given.FieldValidation)
	force = given.Force != nil && *given.Force
	return o, force, refused("PatchOptions", validation.ValidatePatchOptions(&given, kind))
}

func writeOptions(c call, manager string, dryRun []string, fieldValidation string) collection.WriteOptions {
	if manager == "" {
		manager = userAgentName(c.request.UserAgent())
	}
	if fieldValidation == "" {
		fieldValidation = metav1.FieldValidationWarn
	}
	return collection.WriteOptions{
		Manager: manager, DryRun: len(dryRun) > 0, FieldValidation: fieldValidation, Warn: c.warn,
	}
}

// strict reports whether unknown fields and keys that are there twice matter.
func strict(o collection.WriteOptions) bool { return o.FieldValidation != metav1.FieldValidationIgnore }

// userAgentName is the first word of a user agent, as it names a field manager.
func userAgentName(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, name)
	runes := []rune(printable)
	for len(string(runes)) > validation.FieldManagerMaxLength {
		runes = runes[:len(runes)-1]
	}
	return string(runes)
}

// warn adds a warning to the answer, for the client to show, if it is not there yet: a write that
// is decided again warns again. Nothing may have been written yet.
func (c call) warn(text string) {
	header, err := utilnet.NewWarningHeader(warningCode, "-", text)
	if err == nil && !slices.Contains(c.Header()["Warning"], header) {
		c.Header().Add("Warning", header)
	}
}

// warningCode is the code of a warning without a class (RFC 7234, 5.5.7).
const warningCode = 299

// readDeleteOptions reads the body of a DELETE; the query counts only if there is none.
func readDeleteOptions(c call) (o metav1.DeleteOptions, err error) {
	body, err := readBody(c)
	if err != nil {
		return o, err
	}
	if len(body) == 0 {
		err = decodeQuery(c, &o)
	} else {
		err = decodeDeleteOptions(c, body, &o)
	}
	if err != nil {
		return o, err
	}
	return o, refused("DeleteOptions", validation.ValidateDeleteOptions(&o))
}

func decodeDeleteOptions(c call, body []byte, into *metav1.DeleteOptions) error {
	kind, _, err := decode(bodyType(c), body, into, false)
	if err != nil {
		return err
	}
	if kind.Kind != "" && kind.Kind != "DeleteOptions" {
		return apierrors.NewBadRequest("the body of a DELETE is a DeleteOptions, not a " + kind.Kind)
	}
	return nil
}

// deleteCode is the code of a deletion after which the object is still there, or not.
func deleteCode(o metav1.DeleteOptions, stays bool) int {
	//lint:ignore SA1019 old clients send it, and the API server heeds it
	if stays && o.OrphanDependents != nil && !*o.OrphanDependents {
		return http.StatusAccepted
	}
	return http.StatusOK
}
