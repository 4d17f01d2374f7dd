package heap

import "math/bits"

// sample estimates the sum of the sizes of all blocks that are added, each of which counts once,
// however often it comes. It keeps blocks by the hash of their addresses: one of the step's size or
// more always, a smaller one with a chance that grows with its size, and then for the step's size.
// If there are too many, the step doubles. The deviation is that of most/2 blocks: 1 %.
type sample struct {
	step uint64
	kept map[uintptr]uint64 // sizes
	rest uint64             // bytes without an address
}

// most bounds the blocks that a sample keeps.
const most = 1 << 14

func newSample() sample { return sample{step: 1, kept: map[uintptr]uint64{}} }

func (s *sample) add(address uintptr, size uint64) {
	if !s.keeps(address, size) {
		return
	}
	s.kept[address] = size
	for len(s.kept) > most {
		s.step *= 2
		for address, size := range s.kept {
			if !s.keeps(address, size) {
				delete(s.kept, address)
			}
		}
	}
}

func (s *sample) addOther(size uint64) { s.rest += size }

// keeps decides by the address alone, so that a block that comes again is decided alike.
func (s *sample) keeps(address uintptr, size uint64) bool {
	if size >= s.step {
		return true
	}
	of, _ := bits.Mul64(mixed(address), s.step)
	return of < size
}

func (s *sample) total() uint64 {
	total := s.rest
	for _, size := range s.kept {
		total += max(size, s.step)
	}
	return total
}

// mixed is SplitMix64 of an address: each of its bits depends on all of the address.
func mixed(address uintptr) uint64 {
	x := uint64(address)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
