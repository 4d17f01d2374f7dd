package origin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/server/watchcache"
)

// answering is the 503 for a write while etcd does not answer. It asks etcd once more, for half a
// second, so that no write is refused after etcd has come back.
func (s *storage[T]) answering(ctx context.Context) error {
	p := s.cache.Proof()
	if p.State == watchcache.Failing {
		p = s.cache.Probe(ctx)
	}
	var behind apierrors.APIStatus // etcd answers, and only the copy is late
	if p.State != watchcache.Failing || errors.As(p.Err, &behind) && !apierrors.IsServiceUnavailable(p.Err) {
		return nil
	}
	return unavailable(fmt.Sprintf("etcd has not answered since %s (%v): nothing was written",
		p.Since.UTC().Format(time.RFC3339), reason(p.Err)))
}

// notWritten is the answer to a write that failed before it was sent.
func notWritten(err error) error { return ofEtcd(err, "nothing was written") }

// mayBeWritten is the answer to a write that was sent.
func mayBeWritten(err error) error {
	return ofEtcd(err, "the write may have been made: read the object before you repeat it")
}

// ofEtcd makes a 503 of an error that is no API status: etcd could not be asked, or the patience
// with it is over.
func ofEtcd(err error, outcome string) error {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return err
	}
	return unavailable(fmt.Sprintf("etcd does not answer (%v): %s", reason(err), outcome))
}

// reason is an error in the words of a person who waited.
func reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "the client of etcd is closed"
	}
	return err.Error()
}

// unavailable is a 503 that names no time to come again: client-go would repeat the write unseen,
// ten times, before a person learns the cause.
func unavailable(message string) error {
	return apierrors.NewServiceUnavailable(message)
}
