//go:build !race

package reflector

const UnderRace = false
