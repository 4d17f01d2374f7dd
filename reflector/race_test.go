//go:build race

package reflector

// UnderRace: the race detector slows the simulation down about tenfold, and finds a race in a few
// seeds. It also objects to a program that writes into the cache, as a test does.
const UnderRace = true
