package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsAreThoseOfTheTableUnlessAskedFor(t *testing.T) {
	varied := kindOf("Pod that differs in more")
	require.Equal(t, []int{3, 20, 110}, varied.counts(settings{}))
	require.Equal(t, []int{3, 20}, varied.counts(settings{quick: true}))
	require.Equal(t, []int{0, 3, 20}, kinds[0].counts(settings{quick: true}))
	asked, err := numbers("1,5,12")
	require.NoError(t, err)
	require.Equal(t, []int{1, 5, 12}, varied.counts(settings{counts: asked}))
	for _, wrong := range []string{"", "1,", "-1", "many"} {
		_, err := numbers(wrong)
		require.Error(t, err, wrong)
	}
}
