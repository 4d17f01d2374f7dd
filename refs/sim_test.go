package refs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store"
)

// regressions are seeds that once found a fault; each stays.
var regressions = []uint64{
	// A name and the watch of its namespace were of two histories. The name was asked for without a
	// pause.
	2037, 7013709698333455643,
}

// TestSimulation lets names and owners come and go while a server writes and fails. No object is
// told that the server did not have, none is requested without an owner, none is older than the
// registration of its owner, and none is missed. The server is restored from backups too, with
// older versions than those held or newer ones: four minutes later, no Get without an error returns
// what the backup and the writes since do not have. TRIBUTARY_SIM_SEED=n replays one seed;
// TRIBUTARY_SIM_RUNS=n sets how many fours of seeds are run.
func TestSimulation(t *testing.T) {
	total := &tally{faults: map[string]int{}}
	if seed, err := strconv.ParseUint(os.Getenv("TRIBUTARY_SIM_SEED"), 10, 64); err == nil {
		simulate(t, seed, total)
		return
	}
	runs := 5
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SIM_RUNS")); err == nil {
		runs = n
	}
	seeds := slices.Clone(regressions)
	for i := range runs {
		seeds = append(seeds, uint64(1000+i), uint64(2001+i), rand.Uint64(), rand.Uint64())
	}
	for _, seed := range seeds {
		if simulate(t, seed, total); t.Failed() {
			t.Fatalf("seed %d: replay it with TRIBUTARY_SIM_SEED=%d", seed, seed)
		}
	}
	t.Logf("%d gets, %d of them answered with an object, %d stale, %d changes told, %d watches of a namespace, %d restores, %d of them to a version not behind, faults %v",
		total.gets, total.found, total.stale, total.told, total.shared, total.restored, total.passed, total.faults)
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		require.Positive(t, total.faults[fault], "%s was never tried", fault)
	}
	require.Positive(t, total.found)
	require.Positive(t, total.stale)
	require.Positive(t, total.told)
	require.Positive(t, total.shared)
	require.Positive(t, total.restored)
	require.Positive(t, total.passed)
}

// tally counts over all seeds.
type tally struct {
	gets, found, stale, told, shared int
	restored, passed                 int // passed: the versions held
	faults                           map[string]int
}

// faults are what can go wrong on the way, once each.
var faults = map[string]func(*simulation) *listwatchtest.Fault{
	"disconnect":    func(s *simulation) *listwatchtest.Fault { return s.server.Disconnect(s.times()) },
	"expire":        func(s *simulation) *listwatchtest.Fault { return s.server.Expire(s.times()) },
	"mute":          func(s *simulation) *listwatchtest.Fault { return s.server.Mute(s.times()) },
	"truncate":      func(s *simulation) *listwatchtest.Fault { return s.server.Truncate(s.times()) },
	"throttle":      func(s *simulation) *listwatchtest.Fault { return s.server.Throttle(3*time.Second, s.times()) },
	"delay":         func(s *simulation) *listwatchtest.Fault { return s.server.Delay(4*time.Second, s.times()) },
	"stale":         func(s *simulation) *listwatchtest.Fault { return s.server.Stale(s.times()) },
	"no watch list": func(s *simulation) *listwatchtest.Fault { return s.server.NoWatchList(s.times()) },
	"forbidden watch": func(s *simulation) *listwatchtest.Fault {
		return s.server.Fail(listwatchtest.Watch, forbidden, s.times())
	},
	"forbidden list": func(s *simulation) *listwatchtest.Fault {
		return s.server.Fail(listwatchtest.List, forbidden, s.times())
	},
	"server error": func(s *simulation) *listwatchtest.Fault {
		return s.server.Fail(listwatchtest.Watch, apierrors.NewInternalError(errors.New("by order")), s.times())
	},
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("by order"))

// simulation is one seed's server, references and truth.
type simulation struct {
	*rig
	seed   uint64
	share  int // the names from which on the namespace is watched; 0: never
	random *rand.Rand
	total  *tally
	lifted []*listwatchtest.Fault

	to         *address
	former     []*listwatchtest.Collection[*corev1.Secret] // before restores
	cuts       []*listwatchtest.Fault                      // of their connections
	restores   []time.Time
	backup     *store.Snapshot[*corev1.Secret]
	history    map[string][]state // by name, oldest first
	written    map[string]bool    // names at versions, in any history
	writes     int
	owners     map[types.UID]map[string]bool
	registered map[string]int // the number of writes when the newest owner got the name
	seen       int            // requests that were checked
}

// state is one of a name: the value of its object, or empty without one.
type state struct {
	value    string
	since    int // of the writes
	restores int // before it
}

const (
	simNames = 6
	// A connection that was half-open at a restore falls silent: twice the liveness, and a look.
	simNoticed = 4 * time.Minute
	simOwners  = 5
)

func simulate(t *testing.T, seed uint64, total *tally) {
	synctest.Test(t, func(t *testing.T) {
		share := int(seed%2) * 3 // every other seed watches the namespace, too
		s := &simulation{
			share: share, rig: newQuietRig(t), to: &address{}, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), total: total,
			history: map[string][]state{}, written: map[string]bool{}, owners: map[types.UID]map[string]bool{}, registered: map[string]int{},
		}
		s.to.now.Store(&s.source)
		s.Refs = refs.New(s.to.source(), refs.WithIdle(0), refs.WithLogger(discard), refs.WithNamespaceWatch(share))
		s.run()
		for i := range simNames {
			s.history[fmt.Sprintf("n%d", i)] = []state{{}}
		}
		told := s.read()
		for range 150 {
			s.step()
		}
		for _, fault := range append(s.cuts, s.lifted...) {
			fault.Lift()
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s.checkRequests()
		s.checkEnd(told)
		s.stop()
		synctest.Wait()
		for _, server := range append(s.former, s.server) {
			server.Server().AwaitWatches(0)
		}
	})
}

// step does one thing, and lets time pass.
func (s *simulation) step() {
	synctest.Wait()
	s.checkRequests() // all of them are of the owners before
	switch s.random.IntN(40) {
	case 0, 1:
		if now := s.server.Origin().Snapshot(); now.ResourceVersion() != "" {
			s.backup = &now
		}
	case 2:
		if s.backup != nil {
			s.restore()
		}
	}
	name := fmt.Sprintf("n%d", s.random.IntN(simNames))
	owner := types.UID(fmt.Sprintf("o%d", s.random.IntN(simOwners)))
	switch s.random.IntN(10) {
	case 0, 1, 2:
		s.write(name)
	case 3, 4:
		s.setOwner(owner)
	case 5, 6:
		s.fail()
	default:
		s.get(name)
	}
	s.checkRequests()
	if s.random.IntN(3) > 0 {
		time.Sleep(time.Duration(s.random.ExpFloat64() * float64(5*time.Second)))
	}
}

func (s *simulation) write(name string) {
	held, err := s.server.Origin().Get(ns, name)
	if err == nil && (s.random.IntN(3) == 0 || held.Immutable != nil) {
		s.remove(name)
		s.note(name, "")
		return
	}
	value := fmt.Sprint(s.random.Uint64())
	var obj *corev1.Secret
	if s.random.IntN(12) == 0 {
		obj = s.putImmutable(name, value)
	} else {
		obj = s.put(name, value)
	}
	s.note(name, value)
	// What a watch of metadata cannot tell: two histories with one UID and version of an object.
	at := name + " at " + obj.ResourceVersion
	if again := s.written[at]; again && obj.Immutable == nil {
		s.write(name)
	}
	s.written[at] = true
}

// note notes the state of a name.
func (s *simulation) note(name, value string) {
	s.writes++
	s.history[name] = append(s.history[name], state{value, s.writes, len(s.restores)})
}

// restore replaces the server by one with the content of the backup. It may have been written to
// before anybody asks it.
func (s *simulation) restore() {
	for _, fault := range s.lifted {
		fault.Lift()
	}
	s.lifted = nil
	before := s.server
	held := before.Origin().Snapshot().ResourceVersion()
	now := newQuietRig(s.t)
	for i, version := 0, store.Version("1"); version.Before(store.Version(s.backup.ResourceVersion())); i++ {
		version = store.VersionOf(now.put("other", fmt.Sprint(i))) // not given again
	}
	require.NoError(s.t, now.server.Origin().Cache().Replace(store.Items(s.backup.Sorted()...), store.At(s.backup.ResourceVersion())))
	s.former, s.restores = append(s.former, before), append(s.restores, time.Now())
	s.server, s.seen = now.server, 0
	for name := range s.history {
		value := ""
		if obj, ok := s.backup.Get(store.Key(ns, name)); ok {
			value = string(obj.Data["value"])
		}
		s.note(name, value)
	}
	for range s.random.IntN(2) * s.random.IntN(60) {
		s.put("other", fmt.Sprint(s.random.Uint64()))
	}
	s.total.restored++
	if !store.Version(now.server.Origin().Snapshot().ResourceVersion()).Before(store.Version(held)) {
		s.total.passed++
	}
	s.to.now.Store(&now.source)
	s.cuts = append(s.cuts, before.Disconnect(listwatchtest.UntilLifted()))
}

func (s *simulation) setOwner(owner types.UID) {
	var names []string
	for i := range simNames {
		if s.random.IntN(4) == 0 {
			names = append(names, fmt.Sprintf("n%d", i))
		}
	}
	before, now := s.owners[owner], map[string]bool{}
	for _, name := range names {
		if now[name] = true; !before[name] {
			s.registered[name] = s.writes
		}
	}
	s.owners[owner] = now
	s.SetOwner(owner, refs.In(ns, names...))
}

func (s *simulation) fail() {
	kind := slices.Sorted(maps.Keys(faults))[s.random.IntN(len(faults))]
	s.total.faults[kind]++
	s.lifted = append(s.lifted, faults[kind](s))
}

// times has a fault strike up to three times.
func (s *simulation) times() listwatchtest.FaultOption {
	return listwatchtest.Times(1 + s.random.IntN(3))
}

func (s *simulation) owned() map[string]bool {
	all := map[string]bool{}
	for _, names := range s.owners {
		maps.Copy(all, names)
	}
	return all
}

// checkRequests: nothing is requested but by the names that have owners.
func (s *simulation) checkRequests() {
	owned := s.owned()
	requests := s.server.Server().Requests()
	for _, request := range requests[s.seen:] {
		name, ok := strings.CutPrefix(request.Options.FieldSelector, "metadata.name=")
		switch {
		case s.share > 0 && request.Verb == listwatchtest.Watch && request.Options.FieldSelector == "":
			s.total.shared++
		case request.Verb == listwatchtest.Get, request.Verb == listwatchtest.Create:
		case !ok || request.Namespace != ns || !owned[name]:
			s.t.Errorf("seed %d: %s, but the owners refer to %v", s.seed, request, owned)
		}
	}
	s.seen = len(requests)
}

// get reads a name, and judges the answer.
func (s *simulation) get(name string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(s.random.IntN(20))*time.Second)
	defer cancel()
	obj, err := s.Get(ctx, ns, name)
	s.total.gets++
	var why *refs.Error
	switch {
	case !s.owned()[name]:
		require.ErrorIs(s.t, err, refs.ErrNotReferred)
	case err == nil:
		s.total.found++
		s.checkObject(obj, name)
		s.checkFresh(name, string(obj.Data["value"]), obj.Immutable != nil)
	case apierrors.IsNotFound(err):
		s.checkFresh(name, "", false)
	default:
		require.ErrorAs(s.t, err, &why)
		if obj != nil {
			s.total.stale++
			require.False(s.t, why.Since.IsZero())
			s.checkObject(obj, name)
		}
	}
}

func (s *simulation) checkObject(obj *corev1.Secret, name string) {
	require.Equal(s.t, name, obj.Name)
	was := func(st state) bool { return st.value == string(obj.Data["value"]) }
	require.True(s.t, slices.ContainsFunc(s.history[name], was), "seed %d: the server never had this state", s.seed)
}

// checkFresh: the state was the server's at some time after the registration, and none that a
// restore has undone so long ago that silence would have told.
func (s *simulation) checkFresh(name, value string, immutable bool) {
	all := s.history[name]
	for i, st := range all {
		switch {
		case st.value != value:
		case i == len(all)-1:
			return
		case all[i+1].since <= s.registered[name]:
		case immutable, st.restores == len(s.restores), time.Since(s.restores[st.restores]) < simNoticed:
			return
		}
	}
	s.t.Errorf("seed %d: %s is %q, which was over when its owner came, at write %d, or before one of the restores at %v: %v",
		s.seed, name, value, s.registered[name], s.restores, all)
}

// read follows the changes, at a varying pace, and judges each. It returns what was told.
func (s *simulation) read() map[types.NamespacedName]string {
	told := map[types.NamespacedName]string{}
	random := rand.New(rand.NewPCG(s.seed, 1))
	changes := s.Changes(s.t.Context())
	go func() {
		for change := range changes {
			s.total.told++
			switch before, known := told[change.Name]; {
			case change.Old == nil && change.New == nil:
				s.t.Errorf("seed %d: %s: no change", s.seed, change.Name)
			case change.Old != nil && (!known || change.Old.ResourceVersion != before):
				s.t.Errorf("seed %d: %s: told %q last, and the change begins at %q", s.seed, change.Name, before, change.Old.ResourceVersion)
			}
			if len(change.Owners) == 0 && change.New != nil {
				s.t.Errorf("seed %d: %s has no owner", s.seed, change.Name)
			}
			if delete(told, change.Name); change.New != nil {
				told[change.Name] = change.New.ResourceVersion
			}
			time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second)))
		}
	}()
	return told
}

// checkEnd: each name with an owner has the server's state, and one watch.
func (s *simulation) checkEnd(told map[types.NamespacedName]string) {
	watches := 0
	for name := range s.owned() { // a new owner of an immutable object may be the first
		_, _ = s.Get(s.t.Context(), ns, name)
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	for name := range told {
		require.Contains(s.t, s.owned(), name.Name, "seed %d: told, and not referred to", s.seed)
	}
	for name := range s.owned() {
		obj, err := s.Get(s.t.Context(), ns, name)
		held, missing := s.server.Origin().Get(ns, name)
		key := types.NamespacedName{Namespace: ns, Name: name}
		if missing != nil && (err != nil || obj.Immutable == nil) {
			watches++
			require.True(s.t, apierrors.IsNotFound(err), "seed %d: %s: %v", s.seed, name, err)
			require.NotContains(s.t, told, key, "seed %d", s.seed)
			continue
		}
		require.NoError(s.t, err, "seed %d: %s", s.seed, name)
		if obj.Immutable == nil { // else it may have been deleted since
			watches++
			require.Equal(s.t, held.ResourceVersion, obj.ResourceVersion, "seed %d: %s", s.seed, name)
			require.Equal(s.t, held.Data, obj.Data, "seed %d: %s", s.seed, name)
		}
		require.Equal(s.t, obj.ResourceVersion, told[key], "seed %d: %s was not told", s.seed, name)
	}
	switch owned := len(s.owned()); {
	case s.share == 0 || owned < (s.share+1)/2:
		s.server.Server().AwaitWatches(watches)
	case owned >= s.share:
		s.server.Server().AwaitWatches(1)
	} // else it depends on how many there were before
}
