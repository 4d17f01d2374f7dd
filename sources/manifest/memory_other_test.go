//go:build race || !linux

package manifest_test

// measured: there is no TestWhatAManifestCosts here.
const measured = false
