package watchcache

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listOptions are the query parameters of a list or a watch, checked.
type listOptions struct {
	internalversion.ListOptions
	version uint64 // of ResourceVersion; zero for none
}

// parseListOptions reads the query with the API machinery's own decoder and rules: 400 for what cannot be read, 422
// for parameters that contradict each other.
func parseListOptions(c call) (listOptions, error) {
	var o listOptions
	err := scheme.ParameterCodec.DecodeParameters(c.request.URL.Query(), metav1.SchemeGroupVersion, &o.ListOptions)
	if err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateListOptions(&o.ListOptions, true); len(errs) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if o.version, err = readVersion(o.ResourceVersion); err != nil {
		return o, err
	}
	if o.Continue != "" && o.version != 0 {
		return o, badRequest("specifying resource version is not allowed when using continue")
	}
	if o.Limit < 0 {
		return o, badRequest("limit must not be negative")
	}
	return o, checkName(c.target.Name, o)
}

// checkName: the name in the path and the one in a selector may not differ.
func checkName(name string, o listOptions) error {
	if name == "" || o.FieldSelector == nil || o.FieldSelector.Empty() {
		return nil
	}
	if selected, ok := o.FieldSelector.RequiresExactMatch(nameField); !ok || selected != name {
		return badRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return nil
}

func (o listOptions) selection(t Target) Selection {
	return Selection{Namespace: t.Namespace, Name: t.Name, Labels: o.LabelSelector, Fields: o.FieldSelector}
}

// minimumTimeout is the shortest time that a watch without timeoutSeconds lasts; the longest is twice as much, and
// the choice is random, so that clients do not all come back at once.
const minimumTimeout = 30 * time.Minute

func (o listOptions) watch(t Target) WatchOptions {
	timeout := minimumTimeout + rand.N(minimumTimeout)
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timeout = time.Duration(min(*o.TimeoutSeconds, int64(24*time.Hour/time.Second))) * time.Second
	}
	return WatchOptions{
		Selection: o.selection(t), ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		SendInitialEvents: o.SendInitialEvents, Bookmarks: o.AllowWatchBookmarks, Timeout: timeout,
	}
}
