package watchcache

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The errors here are those of the API server, so that clients classify them as they do its own:
// all are *apierrors.StatusError.

// tooOld is the 410 for a version with events that are gone; oldest is the oldest version that
// would still do.
func tooOld(version, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
}

// tooLarge is the 504 for a version that has not been reached. Clients tell it from other timeouts
// by its cause.
func tooLarge(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// pageExpired is the 410 for a page of a state that is gone; fresh continues at the same key, in
// today's state.
func pageExpired(fresh string) error {
	err := apierrors.NewResourceExpired("the state that this continue token is a page of is gone: list again " +
		"without a token, or go on with the token in metadata.continue if an inconsistent list will do")
	err.ErrStatus.ListMeta.Continue = fresh
	return err
}

func notFilled(resource schema.GroupResource) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("the cache of %s has not been filled yet: try again", resource), 1)
}
