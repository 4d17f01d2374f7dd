package reflector

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// notFoundPatience is how long a 404 is taken for that of a server that has just started.
const notFoundPatience = 10 * time.Second

// Logger returns the logger that a reflector of this source and these options uses if its Run gets
// ctx: that of [WithLogger], else that of ctx, else klog's. It names the object type and, if the
// source knows them, resource and namespace. It is for code that logs beside its reflector. The
// source may be nil.
func Logger[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], optionList ...Option) logr.Logger {
	log := klog.FromContext(ctx)
	if given := apply(optionList).log; given != nil {
		log = *given
	}
	objects := reflect.TypeFor[T]().String()
	if typed, ok := source.(interface{ ObjectType() string }); ok {
		objects = typed.ObjectType()
	}
	log = log.WithValues("type", objects)
	named, ok := source.(interface {
		Collection() (resource, namespace string)
	})
	if !ok {
		return log
	}
	resource, namespace := named.Collection()
	if resource != "" {
		log = log.WithValues("resource", resource)
	}
	if namespace != "" {
		log = log.WithValues("namespace", namespace)
	}
	return log
}

// logAgain is how long a class of failures that comes and goes among others is not logged again: a
// watch list and the LIST after it may fail in different ways, attempt for attempt.
const logAgain = 10 * time.Minute

// failing records an error, and logs it if its class is not that of the last one: as an error if a
// person must act. It does not log each attempt.
func (r *Reflector[T]) failing(class Class, err error, at time.Time) {
	news, due, since := r.status.failed(class, err, at)
	person := needsPerson(class, at.Sub(since))
	const message = "List-watch is failing"
	switch {
	case news && !due:
		r.alarmed.Store(person)
	case person:
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
	case Unauthorized, Forbidden, TLS, Credentials, WrongAnswer, Undecodable, StoreError:
		return true
	case NotFound:
		return lasts >= notFoundPatience
	}
	return false
}
