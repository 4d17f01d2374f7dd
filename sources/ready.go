package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/age"
	"github.com/tributary-go/tributary/reflector"
)

// Ready returns nil if Run keeps the sources and all but the optional ones are ready, and else an
// error for each that is not: see [Status.Ready]. It makes Sources a [reflector.Readier] for
// [reflector.ReadyHandler]. It does not block.
func (s *Sources) Ready(maxStaleness time.Duration) error {
	if err := s.kept(); err != nil {
		return err
	}
	var all []error
	for _, status := range s.Status() {
		if !status.Optional {
			all = append(all, status.Ready(maxStaleness))
		}
	}
	return errors.Join(all...)
}

var _ reflector.Readier = (*Sources)(nil)

// WaitSynced blocks until [Sources.Synced] is closed. Another goroutine must read Updates
// meanwhile. If ctx ends first, the error names each source that has not been read, with the
// problems of the source, or says that Run was never called. If Run ends first, WaitSynced fails at
// once, with Run's error if there is one.
func (s *Sources) WaitSynced(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	default: // of several that are ready, a select takes any
	}
	select {
	case <-s.synced:
		return nil
	case <-s.ended:
		return s.kept()
	case <-ctx.Done():
	}
	return fmt.Errorf("not synced: %w: %w", s.unread(), context.Cause(ctx))
}

// unread is why Synced is not closed.
func (s *Sources) unread() error {
	if err := s.kept(); err != nil {
		return err
	}
	var all []error
	for _, f := range s.list() {
		if !f.ready() {
			status := f.status()
			all = append(all, status.not(reflector.NotSynced, "not read yet").Err)
		}
	}
	if len(all) == 0 { // the last one has been read just now
		return errors.New("sources: not read yet")
	}
	return errors.Join(all...)
}

// kept is an error unless Run is under way.
func (s *Sources) kept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == idle:
		return errors.New("sources: Run has not been called")
	case s.failed != nil:
		return fmt.Errorf("Run has ended: %w", s.failed)
	case s.phase == over:
		return errors.New("sources: Run has ended")
	}
	return nil
}

// Verdict judges the source's newest state, as [reflector.Status.Verdict] judges a copy: Ready,
// [Sources.SafeToPrune], metrics and the status page say what it says. The state is right if the
// source runs, the state is its own and not a checkpoint's, and it is proven within maxStaleness.
// Zero asks for a proof of any age. A look at a file or an answer of a URL is the proof itself,
// unless the source has a [health.Report].Doubt: then the last proof before the doubt counts. The
// copy of an API server's pods is proven by its reflector, and must have a resource version: an
// empty cache between client and server has none.
func (s Status) Verdict(maxStaleness time.Duration) reflector.Verdict {
	old := age.Of(s.proof())
	switch {
	case s.Phase == reflector.Idle:
		return s.not(reflector.NotRun, "Run has not been called")
	case s.Phase == reflector.Stopped:
		return s.not(reflector.Ended, "it has ended")
	case s.Restored:
		return s.not(reflector.NotSynced, "its pods are of a checkpoint")
	case !s.Seen:
		return s.not(reflector.NotSynced, "not read yet")
	case s.Doubt != nil && s.ProvenAt.IsZero():
		return reflector.Verdict{Class: reflector.Class(classOf(s.Doubt)), Err: fmt.Errorf("%s: %w", s.Source, s.Doubt)}
	case s.Reflector != nil:
		return s.reflected(maxStaleness)
	case s.StaleAfter == 0 || maxStaleness == 0 || old <= maxStaleness:
		return reflector.Verdict{Class: reflector.OK}
	case s.Doubt != nil:
		return s.not(reflector.Stale, fmt.Sprintf("not proven for %s, allowed are %s", old.Round(time.Millisecond), maxStaleness))
	}
	return s.not(reflector.Stale, fmt.Sprintf("nothing heard for %s, allowed are %s", old.Round(time.Millisecond), maxStaleness))
}

// proof is when the state was proven last, for a source without a reflector.
func (s Status) proof() time.Time {
	if s.Doubt != nil {
		return s.ProvenAt
	}
	return s.LastContact
}

// reflected is the verdict of the reflector.
func (s Status) reflected(maxStaleness time.Duration) reflector.Verdict {
	v := s.Reflector.Verdict(maxStaleness)
	switch version := s.Reflector.ResourceVersion; {
	case v.Err != nil:
		return reflector.Verdict{Class: v.Class, Err: fmt.Errorf("%s: %w", s.Source, v.Err)}
	case version == "" || version == "0":
		return s.not(reflector.MayBeOld, "the server's list has no resource version: is it an empty cache between client and server?")
	}
	return v
}

// not is a verdict with the problems of the source as its cause.
func (s Status) not(class reflector.Class, why string) reflector.Verdict {
	if len(s.Problems) > 0 {
		return reflector.Verdict{Class: class, Err: fmt.Errorf("%s: %s: %w", s.Source, why, errors.Join(s.Problems...))}
	}
	return reflector.Verdict{Class: class, Err: fmt.Errorf("%s: %s", s.Source, why)}
}

// Ready returns nil if the source's [Status.Verdict] is good, and no state has waited for the
// reader longer than maxStaleness. Else it names the fault, with the problems behind it. A problem
// alone does not matter: bad manifests and servers that are away keep the pods. The proof of a
// healthy API server's pods is up to two minutes old (see [reflector.Reflector.Ready]), and files
// and URLs are read every interval.
func (s Status) Ready(maxStaleness time.Duration) error {
	v := s.Verdict(maxStaleness)
	if v.Err == nil && maxStaleness > 0 && s.Lag > maxStaleness {
		v = s.not(reflector.Stale, fmt.Sprintf("the reader of Updates is late by %s, allowed are %s", s.Lag.Round(time.Millisecond), maxStaleness))
	}
	return v.Err
}

// SafeToPrune reports whether Updates has delivered everything that the named source declares. Its
// [Status.Verdict] is good, with a proof not older than [health.Report].StaleAfter, no state is
// pending, there is no Doubt, and no problem hides a pod. Only then may an agent stop a pod because
// the source does not list it: in a partial view, missing pods look deleted. If several sources
// have the name, all must be safe. If no source has it, SafeToPrune is false.
//
// A manifest that was good since Run began, and has turned bad, hides nothing: its pods are kept. A
// file, a document or an item that was never good may declare a pod of an earlier run. So may a
// folder, a URL or an API server that cannot be read. With these SafeToPrune is false. A file of a
// folder that is no manifest, such as a README.md or an empty file, hides nothing.
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
