//go:build race

// Package race tells a test whether the race detector runs. The detector holds memory of its own,
// makes a long simulation some ten times slower, and objects to a race that is made on purpose.
package race

// Enabled is true while the race detector runs.
const Enabled = true
