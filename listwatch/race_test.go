//go:build race

package listwatch_test

// The race detector holds memory of its own, and takes minutes for gigabytes of updates.
const underRace = true
