// Package age tells how old a moment is.
package age

import "time"

// Of is the time since a moment, by the clock that says more: monotonic time stands still while a
// machine is suspended, and wall time may be set back.
func Of(at time.Time) time.Duration { return At(time.Now(), at) }

// At is Of as of now.
func At(now, at time.Time) time.Duration { return max(now.Sub(at), now.Round(0).Sub(at.Round(0))) }
