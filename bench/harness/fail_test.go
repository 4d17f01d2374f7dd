package harness_test

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/bench/harness"
)

func TestAFailureIsTheErrorOfTheMeasurement(t *testing.T) {
	cause := errors.New("no such server")
	err := harness.Try(func() {
		harness.Within("relist", func() { harness.Must(0, cause) })
	})
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "relist: no such server")
	require.NoError(t, harness.Try(func() { harness.Check(nil) }))
	require.Panics(t, func() { _ = harness.Try(func() { panic("a mistake") }) }, "it is no failure of a measurement")
}

func TestAtOnceWaitsForAllAndFailsIfOneDoes(t *testing.T) {
	var running, most, done atomic.Int64
	err := harness.Try(func() {
		harness.AtOnce(20, 3, func(i int) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			done.Add(1)
			if i == 7 {
				harness.Fail("number %d", i)
			}
		})
	})
	require.EqualError(t, err, "number 7")
	require.EqualValues(t, 20, done.Load())
	require.LessOrEqual(t, most.Load(), int64(3))
}

func TestSubjectsAreMeasuredByTurns(t *testing.T) {
	var order []string
	medians := harness.ByTurns(3, []string{"a", "b"}, func(subject string) harness.Figures {
		order = append(order, subject)
		return harness.Figures{"n": float64(len(order))}
	})
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, order)
	require.Equal(t, []harness.Figures{{"n": 3}, {"n": 4}}, medians)
}

func TestAValueIsAProductOfFigures(t *testing.T) {
	f := harness.Figures{"cpu": 0.5, "events": 1000}
	for product, want := range map[string]float64{"cpu": 0.5, "cpu*1e6/events": 500, "events/cpu/2": 1000} {
		value, ok := f.Value(product)
		require.True(t, ok, product)
		require.InDelta(t, want, value, 1e-9, strconv.Quote(product))
	}
	_, ok := f.Value("cpu/none")
	require.False(t, ok)
}
