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
		Phase: Waiting, Synced: true, ProvenAt: at, ProbeErr: errors.New("no probe"), Contradiction: errors.New("no"), LastContact: at, LastEvent: at, LastProgress: at,
		Err: errors.New("no"), Class: Forbidden, Since: at, Attempts: 1, RetryAt: at, RetryAfter: time.Second,
		Lists: map[Class]int{OK: 1}, Watches: 2, Events: 3, Failures: 4, Skipped: 5, Unplaced: 6, Listed: 9, Unusable: 8, Stale: 7,
		Sharing: listwatch.SharingStats{Same: 1, Lookups: 2, Hits: 3, Bytes: 4, Shared: 5, Entries: 6, Held: 7, Changing: 8},
	}
	value := reflect.ValueOf(one)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; name != "ResourceVersion" {
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
	require.Equal(t, one, sum)
}

func TestSumIsAsWellAsTheWorst(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	sum := Sum(maps.All(map[string]Status{
		"a": {Phase: Watching, Synced: true, ProvenAt: late, LastContact: late, LastEvent: early, LastProgress: late, Events: 1},
		"b": {Phase: Waiting, LastContact: early, LastEvent: late, LastProgress: early, ProvenAt: early, Events: 2},
	}))
	require.Equal(t, Status{
		Phase: Waiting, ProvenAt: early, Class: OK, LastContact: early, LastEvent: early, LastProgress: early,
		Lists: map[Class]int{}, Events: 3,
	}, sum)
	require.Equal(t, Status{Phase: Idle, Synced: true, Class: OK, Lists: map[Class]int{}}, Sum(maps.All(map[string]Status{})))
}
