package reflector

import (
	"errors"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/listwatch"
)

// TestSumLosesNoField: the sum of one Status is that Status, whatever fields there are.
func TestSumLosesNoField(t *testing.T) {
	at := time.Unix(1, 0)
	one := Status{
		Phase: Waiting, Synced: true, ProvenAt: at, ProofInterval: time.Minute, ProbeErr: errors.New("no probe"), Contradiction: errors.New("no"), LastContact: at, LastEvent: at, LastProgress: at,
		Err: errors.New("no"), Class: Forbidden, Since: at, Attempts: 1, RetryAt: at, RetryAfter: time.Second,
		Lists: map[Class]int{OK: 1}, Watches: 2, Events: 3, Failures: 4, Skipped: 5, Unplaced: 6, Listed: 9, Unusable: 8, Stale: 7,
		Sharing: listwatch.SharingStats{Same: 1, Lookups: 2, Hits: 3, Bytes: 4, Shared: 5, Entries: 6, Held: 7},
	}
	value := reflect.ValueOf(one)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; name != "ResourceVersion" && value.Type().Field(i).IsExported() {
			require.False(t, value.Field(i).IsZero(), "%s is not set in this test: set it, and sum it up", name)
		}
	}
	sum := Sum(maps.All(map[string]Status{"a": one}))
	require.ErrorIs(t, sum.Err, one.Err)
	require.ErrorContains(t, sum.Err, `member "a"`)
	sum.Err = one.Err
	require.ErrorIs(t, sum.ProbeErr, one.ProbeErr)
	require.ErrorIs(t, sum.Contradiction, one.Contradiction)
	sum.ProbeErr, sum.Contradiction = one.ProbeErr, one.Contradiction
	sum.parts = nil // of the verdict
	require.Equal(t, one, sum)
}

func TestSumIsAsWellAsTheWorst(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	sum := Sum(maps.All(map[string]Status{
		"a": {Phase: Watching, Synced: true, ProvenAt: late, LastContact: late, LastEvent: early, LastProgress: late, Events: 1},
		"b": {Phase: Waiting, LastContact: early, LastEvent: late, LastProgress: early, ProvenAt: early, Events: 2},
	}))
	sum.parts = nil // of the verdict
	require.Equal(t, Status{
		Phase: Waiting, ProvenAt: early, Class: OK, LastContact: early, LastEvent: early, LastProgress: early,
		Lists: map[Class]int{}, Events: 3,
	}, sum)
	require.Equal(t, Status{Phase: Idle, Synced: true, Class: OK, Lists: map[Class]int{}}, Sum(maps.All(map[string]Status{})))
}

// TestSumIsAsRightAsEachPart: no fault of one part vanishes in a sum, whatever else is
// wrong with the others.
func TestSumIsAsRightAsEachPart(t *testing.T) {
	now := time.Now()
	right := Status{Phase: Watching, Synced: true, ProvenAt: now, Class: OK, Listed: 1000}
	cut := right
	cut.Err, cut.Class = errors.New("cut"), Disconnected
	sum := func(last Status) Status {
		return Sum(func(yield func(string, Status) bool) { _ = yield("a", right) && yield("b", cut) && yield("c", last) })
	}
	require.Equal(t, Verdict{Class: OK}, sum(right).Verdict(time.Minute))
	change := func(do func(*Status)) Status { s := right; do(&s); return s }
	for class, last := range map[Class]Status{
		History:     change(func(s *Status) { s.Contradiction = historyError("ns/a", "it is not held") }),
		Undecodable: change(func(s *Status) { s.Listed, s.Unusable = 2, 2 }),
		NotSynced:   change(func(s *Status) { s.Synced = false }),
		Stale:       change(func(s *Status) { s.ProvenAt = now.Add(-time.Hour) }),
		MayBeOld:    change(func(s *Status) { s.ProvenAt = time.Time{} }),
		Ended:       change(func(s *Status) { s.Phase = Stopped }),
	} {
		v := sum(last).Verdict(time.Minute)
		require.Equal(t, class, v.Class)
		require.ErrorContains(t, v.Err, `member "c": `)
		require.Equal(t, Ended, sum(last).Ended(nil, now).Verdict(time.Minute).Class)
	}
}

// TestContradictionOutlivesTheRelistThatFails: neither the failure of the relist nor another loss
// hides that the copy is wrong. A list that succeeds ends it.
func TestContradictionOutlivesTheRelistThatFails(t *testing.T) {
	keeper := statusKeeper{logged: map[Class]time.Time{}, now: Status{Phase: Watching, Synced: true, ProvenAt: time.Now(), Class: OK}}
	contradiction := historyError("ns/a", "it is not held")
	keeper.failed(History, contradiction, time.Now())
	keeper.failed(Undecodable, errors.New("no object"), time.Now())
	keeper.failed(ServerError, errors.New("no list"), time.Now())
	v := keeper.read().Verdict(time.Minute)
	require.Equal(t, History, v.Class)
	require.ErrorIs(t, v.Err, contradiction)
	require.ErrorContains(t, v.Err, "no list")
	keeper.healed()
	keeper.well()
	require.Equal(t, OK, keeper.read().Verdict(time.Minute).Class)
}
