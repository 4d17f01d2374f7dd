package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Drift is the result of a verification: the differences between the copy and the server.
type Drift struct {
	// At is the time of the request; ResourceVersion is the version of the server's answer.
	At              time.Time
	ResourceVersion string
	// Objects is the number of objects on the server.
	Objects int
	// Count is the number of objects that differ. Differences has the first 100 of them.
	Count       int
	Differences []Difference
	// Healed, in a [Status], says that a later list has replaced the copy. The relist follows a
	// verification that finds a difference, at most once a minute; see [Informer.Verify].
	Healed bool
}

// Difference is one object on which the copy and the server differ.
type Difference struct {
	Key string
	// Server and Store are the resource versions on either side; empty if the object is missing
	// there.
	Server, Store string
	// Path is the first field that differs under an equal version, by its names in JSON:
	// spec.containers[0].image. A server can change an object without a new version, for example
	// after a CRD got a default. The next relist adopts the server's content.
	Path string
}

const (
	maxDifferences = 100             // enough to see a pattern
	verifyPage     = 500             // the page size of client-go's lists
	verifyPatience = 3 * time.Minute // a quiet store waits for a bookmark, about a minute
)

var errIncomparable = errors.New("the server's resource versions cannot be compared, " +
	"and the copy is not at the version of its answer")

// Verify compares keys, resource versions and content with a fresh, consistent LIST in pages of
// 500, and reports the differences. It changes nothing in the store and tells no handler.
//
// A copy that differs is not right ([reflector.Drift]): Ready fails, until the relist that Verify
// asks for has replaced the copy, and told the handlers. The relist is made at once, but at most
// once a minute.
//
// It reports only certain differences. A difference that may be a change in flight is left out; if
// it is real, the next verification finds it.
//
// It blocks for the LIST, and then until the store has reached the LIST's version, up to 3 minutes;
// after that it fails. Meanwhile it holds all keys and versions, and those listed objects that the
// store did not hold in the same state.
func (i *Informer[T]) Verify(ctx context.Context) (Drift, error) { return i.verifyAndNote(ctx) }

func (i *shared[T]) verifyAndNote(ctx context.Context) (Drift, error) {
	d, err := i.check(ctx)
	i.mu.Lock()
	if i.driftErr = err; err == nil {
		i.drift = d
		i.driftList, _ = i.ring.lists()
	}
	i.mu.Unlock()
	if err == nil && d.Count > 0 {
		i.copier.Doubt(d.reason())
	}
	return d, err
}

// relistedLocked reports whether the store has a list that began after the last verification. In a
// union, each member that differed has to list again, and is not right until then.
func (i *shared[T]) relistedLocked() bool {
	if i.source == nil {
		return i.copier.Status().Err == nil
	}
	_, listed := i.ring.lists()
	return listed > i.driftList
}

// reason says in one line how the copy differs.
func (d *Drift) reason() error {
	first := d.Differences[0]
	how := fmt.Sprintf("version %s on the server, %s in the copy", first.Server, first.Store)
	switch {
	case first.Path != "":
		how = "in " + first.Path
	case first.Server == "":
		how = "which the server does not have"
	case first.Store == "":
		how = "which the copy does not have"
	}
	return fmt.Errorf("a verification found %d different objects, such as %s (%s)", d.Count, first.Key, how)
}

func (i *shared[T]) verify(ctx context.Context) (Drift, error) {
	if i.optionErr != nil { // the informer will never run
		return Drift{}, fmt.Errorf("informer: verify: %w", i.optionErr)
	}
	if err := i.WaitSynced(ctx); err != nil {
		return Drift{}, fmt.Errorf("informer: verify: %w", err)
	}
	d, err := i.compare(ctx)
	if err != nil {
		err = fmt.Errorf("informer: verify: %w", err)
	}
	return d, err
}

// compare compares a store that is synced with its source.
func (i *shared[T]) compare(ctx context.Context) (Drift, error) {
	before := i.versions()
	d := Drift{At: time.Now()}
	server, unlike, err := i.listVersions(ctx, &d)
	if err != nil {
		return d, err
	}
	patient, cancel := context.WithTimeout(ctx, verifyPatience)
	defer cancel()
	if _, comparable := before.at.Compare(store.Version(d.ResourceVersion)); comparable {
		if err := i.WaitForResourceVersion(patient, d.ResourceVersion); err != nil {
			return d, fmt.Errorf("the copy does not reach the server's version: %w", err)
		}
	} else if string(i.versions().at) != d.ResourceVersion {
		return d, errIncomparable
	}
	after := i.versions()
	d.compare(server, before, after)
	for _, obj := range unlike {
		key := store.KeyOf(obj)
		state, ok := after.Get(key)
		if !ok || !sameVersion(state, obj) {
			continue
		}
		if held := i.objects.Open(state); !content.Equal(held, obj) {
			d.differ(Difference{Key: key, Server: obj.GetResourceVersion(), Store: held.GetResourceVersion(), Path: content.Difference(held, obj)})
		}
	}
	return d, nil
}

// sameVersion reports whether two objects should have the same content.
func sameVersion(a, b store.Entry) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion()
}

// listVersions reads the server's state: the version of each object, and the objects that the store
// holds otherwise or not at all.
func (i *shared[T]) listVersions(ctx context.Context, d *Drift) (versions map[string]string, unlike []T, err error) {
	versions = map[string]string{}
	source := i.source
	if lw, ok := source.(*listwatch.ListWatch[T]); ok {
		source = lw.Unshared()
	}
	options := metav1.ListOptions{Limit: verifyPage} // no version: the server's newest state
	for obj, err := range stream.Pages(ctx, source, options, &d.ResourceVersion) {
		var unusable *listwatch.DecodeError
		if errors.As(err, &unusable) {
			continue // the store cannot hold it either
		}
		if err != nil {
			return nil, nil, err
		}
		key := store.KeyOf(obj)
		versions[key] = obj.GetResourceVersion()
		if held, ok := i.objects.Entries().Get(key); !ok || !sameVersion(held, obj) || !content.Equal(i.objects.Open(held), obj) {
			unlike = append(unlike, obj)
		}
	}
	d.Objects = len(versions)
	return versions, unlike, nil
}

// versions is a state of the store, as far as it is one member's.
type versions struct {
	snapshot
	at     store.Version
	member *member // nil for all
}

func (i *shared[T]) versions() versions {
	if i.member == nil {
		now := i.objects.Entries().Snapshot()
		return versions{now, store.Version(now.ResourceVersion()), nil}
	}
	at, _ := i.member.reached() // read before the state, which may then be newer
	return versions{i.objects.Entries().Snapshot(), store.Version(at), i.member}
}

// held is the version of an object; empty if the key is absent.
func (v versions) held(key string) string {
	if state, ok := v.Get(key); ok {
		return state.GetResourceVersion()
	}
	return ""
}

// has reports whether a key that is held is the member's.
func (v versions) has(key string) bool {
	if v.member == nil {
		return true
	}
	_, ok := v.member.held.Get(key)
	return ok
}

// compare finds the certain differences. The server's state is of d.ResourceVersion. The state
// after is the store's, complete at least up to there; before is an older state of the store.
//
//   - Held at another version: a difference if the store's is older, or if it is newer but belongs
//     in the answer. A version newer than the answer is a later change.
//   - Missing in the store: deleted since the answer. It is a difference if it was also missing
//     before, when the store was complete beyond the object's version.
//   - Missing on the server: created since the answer, unless its version is not newer than the
//     answer.
func (d *Drift) compare(server map[string]string, before, after versions) {
	at := store.Version(d.ResourceVersion)
	for key, version := range server {
		held := after.held(key)
		switch {
		case held == version:
		case held == "":
			if before.at.Reaches(store.Version(version)) && before.held(key) == "" {
				d.differ(Difference{Key: key, Server: version, Store: held})
			}
		case at.Reaches(store.Version(held)):
			d.differ(Difference{Key: key, Server: version, Store: held})
		}
	}
	for key, state := range after.All() {
		held := state.GetResourceVersion()
		if _, there := server[key]; !there && at.Reaches(store.Version(held)) && after.has(key) {
			d.differ(Difference{Key: key, Store: held})
		}
	}
}

func (d *Drift) differ(difference Difference) {
	d.Count++
	if len(d.Differences) < maxDifferences {
		d.Differences = append(d.Differences, difference)
	}
}

func (i *shared[T]) verifyRepeatedly(ctx context.Context) {
	timer := time.NewTimer(i.options.verify)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		d, err := i.verifyAndNote(ctx)
		if ctx.Err() != nil {
			return
		}
		if i.options.report != nil {
			guarded(func() { i.options.report(d, err) }, func(p PanicError) { i.failed(&p) })
		}
		timer.Reset(i.options.verify)
	}
}
