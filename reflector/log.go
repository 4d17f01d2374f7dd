package reflector

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// notFoundPatience is how long a 404 is taken for that of a server that has just started.
const notFoundPatience = 10 * time.Second

// Logger returns the logger that a reflector of this source and these options uses if its Run gets
// ctx. It is for code that logs beside its reflector. The source may be nil.
func Logger[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], optionList ...Option) logr.Logger {
	return loggerFor(ctx, source, apply(optionList).log)
}

// loggerFor is the logger of the option, else that of ctx, else klog's. It names the object type
// and, if the source knows them, resource and namespace.
func loggerFor[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], given *logr.Logger) logr.Logger {
	log := klog.FromContext(ctx)
	if given != nil {
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

// logged has the time at which each class of failures was last logged.
type logged struct {
	mu sync.Mutex
	at map[Class]time.Time // guarded by mu
}

// due reports whether a class is to be logged now, in a trouble that lasts since some time.
func (l *logged) due(class Class, since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.at[class]; known && !last.Before(since) && now.Sub(last) < logAgain {
		return false
	}
	if l.at == nil {
		l.at = map[Class]time.Time{}
	}
	l.at[class] = now
	return true
}

// failing records an error, and logs it if its class is not that of the last one: as an error if a
// person must act. It does not log each attempt.
func (r *Reflector[T]) failing(class Class, err error, at time.Time) {
	news, since := r.status.failed(class, err, at)
	if news && !r.logged.due(class, since, at) {
		r.alarmed.Store(needsPerson(class, at.Sub(since)))
		return
	}
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
	case Unauthorized, Forbidden, TLS, Credentials, WrongAnswer, Undecodable, StoreError:
		return true
	case NotFound:
		return lasts >= notFoundPatience
	}
	return false
}
