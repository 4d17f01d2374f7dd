package collection

import "github.com/tributary-go/tributary/store"

// dryRun is a storage in which nothing is written.
type dryRun[T store.Object] struct{ Storage[T] }

func (s dryRun[T]) Write(key string, decide func(stored T, found bool) (Decision[T], error)) (T, error) {
	stored, found, err := s.Read(key)
	if err != nil {
		return stored, err
	}
	d, err := decide(stored, found)
	return d.Object, err
}
