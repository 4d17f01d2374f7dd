//go:build !linux && !race

package manifest_test

import "testing"

// TestGreedyManifestsAreRefused wants each to be refused for its size, but for those that are only
// long. On Linux, TestWhatAManifestCosts does so.
func TestGreedyManifestsAreRefused(t *testing.T) {
	for name := range greedy {
		requireRefused(t, name)
	}
}
