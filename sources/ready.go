package sources

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
)

// Ready returns nil if all sources but the optional ones are ready, and else an error for each that
// is not: see [Status.Ready]. It makes Sources a [reflector.Readier] for [reflector.ReadyHandler].
// It does not block.
func (s *Sources) Ready(maxStaleness time.Duration) error {
	var all []error
	for _, status := range s.Status() {
		if !status.Optional {
			all = append(all, status.Ready(maxStaleness))
		}
	}
	return errors.Join(all...)
}

var _ reflector.Readier = (*Sources)(nil)

// Ready returns nil if the source has been read from Updates, was heard of within maxStaleness, and
// no state has waited for the reader longer than that. Else it names the fault, with the problems
// behind it. A problem alone does not matter: bad manifests and servers that are away keep the
// pods. An API server sends a sign of life about once a minute, and files and URLs are read every
// interval: see [reflector.Reflector.Ready].
func (s Status) Ready(maxStaleness time.Duration) error {
	var wrong string
	silence := time.Since(s.LastContact)
	switch {
	case s.ended():
		wrong = "it has ended"
	case s.Restored:
		wrong = "its pods are of a checkpoint"
	case !s.Seen:
		wrong = "not read yet"
	case s.Reflector != nil && s.Reflector.Verdict(maxStaleness).Err != nil:
		return fmt.Errorf("%s: %w", s.Source, s.Reflector.Verdict(maxStaleness).Err)
	case s.StaleAfter > 0 && silence > maxStaleness:
		wrong = fmt.Sprintf("nothing heard for %s, allowed are %s", silence.Round(time.Millisecond), maxStaleness)
	case s.Lag > maxStaleness:
		wrong = fmt.Sprintf("the reader of Updates is late by %s, allowed are %s", s.Lag.Round(time.Millisecond), maxStaleness)
	default:
		return nil
	}
	if len(s.Problems) > 0 {
		return fmt.Errorf("%s: %s: %w", s.Source, wrong, errors.Join(s.Problems...))
	}
	return fmt.Errorf("%s: %s", s.Source, wrong)
}

// ended reports whether the source has ended with an error.
func (s Status) ended() bool {
	return slices.ContainsFunc(s.Problems, func(problem error) bool { return access.ClassOf(problem) == classEnded })
}

// SafeToPrune reports whether Updates has delivered everything that the named source declares. Its
// state is complete and fresh (see [health.Report].StaleAfter), it is not from a checkpoint, no
// state is pending, and no problem hides a pod. Only then may an agent stop a pod because the
// source does not list it: in a partial view, missing pods look deleted. If several sources have
// the name, all must be safe. If no source has it, SafeToPrune is false.
//
// A manifest that was good since Run began, and has turned bad, hides nothing: its pods are kept. A
// file, a document or an item that was never good may declare a pod of an earlier run. So may a
// folder, a URL or an API server that cannot be read. With these SafeToPrune is false.
//
// It is false while a file or a folder has never been there, as its path may be misspelt, although
// Synced does not wait for it. Point to an empty folder to declare that there are no static pods.
// For a source of your own each problem counts, unless the report is Complete. Under [LikeKubelet]
// each problem counts, because bad manifests lose their pods.
func (s *Sources) SafeToPrune(source string) bool {
	found := false
	for _, f := range s.list() {
		if f.name != source {
			continue
		}
		if !f.safeToPrune() {
			return false
		}
		found = true
	}
	return found
}
