package lookup

import (
	"errors"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errNotAsked = errors.New("the API server is not asked: give New the option Owners")

// Guess suggests a workload for a pod with an [Lookup.Owner] that is not known, and gives the
// reason why it is not known. If the owner is known, guess is zero and reason is nil. A guess comes
// from names alone. It has no UID, and it can be wrong: anyone can give a Job such a name. It is
// zero if the names suggest nothing.
//
// A ReplicaSet of a Deployment is named NAME-HASH, and its pods have the label pod-template-hash. A
// Job of a CronJob is named NAME-MINUTES, after the time at which it was due.
func (l *Lookup) Guess(pod *corev1.Pod) (guess metav1.OwnerReference, reason error) {
	if _, known := l.Owner(pod); known {
		return guess, nil
	}
	object, _ := ownedBy(pod)
	guess = guessOf(pod, object)
	if l.owners == nil {
		return guess, errNotAsked
	}
	return guess, l.owners.reason(object)
}

func guessOf(pod *corev1.Pod, object owned) (guess metav1.OwnerReference) {
	at := strings.LastIndexByte(object.name, '-')
	if at <= 0 {
		return guess
	}
	name, suffix := object.name[:at], object.name[at+1:]
	switch {
	case object.resource.Resource == "replicasets" && suffix != "" && suffix == pod.Labels["pod-template-hash"]:
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	case object.resource.Resource == "jobs" && isMinute(suffix, pod.CreationTimestamp.Time):
		return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: name}
	}
	return guess
}

// isMinute reports whether a suffix is a time at which a Job of a pod may have been due, in minutes
// since 1970: in the year before the pod was created, or a little later by another clock.
func isMinute(suffix string, created time.Time) bool {
	minutes, err := strconv.ParseUint(suffix, 10, 32)
	if err != nil || suffix[0] == '0' || created.IsZero() {
		return false
	}
	age := created.Sub(time.Unix(int64(minutes)*60, 0))
	return -5*time.Minute < age && age < 366*24*time.Hour
}
