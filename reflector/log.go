package reflector

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/store"
)

// notFoundPatience is how long a 404 is taken for that of a server that has just started.
const notFoundPatience = 10 * time.Second

// Logger returns the logger that a reflector with these options uses if its Run gets ctx. It is for
// code that logs beside its reflector.
func Logger[T store.Object](ctx context.Context, optionList ...Option) logr.Logger {
	return loggerFor[T](ctx, apply(optionList).log)
}

// loggerFor is the logger of the option, else that of ctx, else klog's. It names the object type.
func loggerFor[T store.Object](ctx context.Context, given *logr.Logger) logr.Logger {
	log := klog.FromContext(ctx)
	if given != nil {
		log = *given
	}
	return log.WithValues("type", reflect.TypeFor[T]().String())
}

// failing records an error, and logs it if its class is not that of the last one: as an error if a
// person must act. It does not log each attempt.
func (r *Reflector[T]) failing(class Class, err error, at time.Time) {
	news, since := r.status.failed(class, err, at)
	const message = "List-watch is failing"
	switch {
	case needsPerson(class, at.Sub(since)):
		if !r.alarmed.Swap(true) || news {
			r.log.Error(err, message, "class", class)
		}
	case news:
		r.log.Info(message, "class", class, "reason", err.Error())
		r.alarmed.Store(false)
	}
}

// needsPerson reports whether a failure does not pass by itself.
func needsPerson(class Class, lasts time.Duration) bool {
	switch class {
	case Unauthorized, Forbidden, TLS, Credentials, Undecodable, StoreError:
		return true
	case NotFound:
		return lasts >= notFoundPatience
	}
	return false
}
