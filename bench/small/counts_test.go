package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsAreThoseOfTheTableUnlessAskedFor(t *testing.T) {
	varied := kindOf("Pod that differs in more")
	require.Equal(t, []int{3, 20, 110}, varied.counts(sizes{}))
	require.Equal(t, []int{3, 20}, varied.counts(sizes{quick: true}))
	require.Equal(t, []int{0, 3, 20}, kinds[0].counts(sizes{quick: true}))
	require.Equal(t, []int{1, 5, 12}, varied.counts(sizes{counts: []int{1, 5, 12}}))
}
