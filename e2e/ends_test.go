package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// ends records how each request of a reflector ended: what its Metrics are told. A Status that
// lasts for a moment between two samples is not lost here.
type ends struct {
	mu   sync.Mutex // guards what follows
	seen []end
}

type end struct {
	class reflector.Class
	at    time.Time
}

func (e *ends) ListEnded(s reflector.ListStats)   { e.add(s.Class) }
func (e *ends) WatchEnded(s reflector.WatchStats) { e.add(s.Class) }

func (e *ends) add(class reflector.Class) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, end{class, time.Now()})
}

// since lists how requests ended from a moment on, and when, counted from there.
func (e *ends) since(t time.Time) (classes []reflector.Class, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var parts []string
	for _, one := range e.seen {
		if !one.at.Before(t) {
			classes = append(classes, one.class)
			parts = append(parts, fmt.Sprintf("%s at %s", one.class, one.at.Sub(t).Round(10*time.Millisecond)))
		}
	}
	return classes, strings.Join(parts, ", ")
}
