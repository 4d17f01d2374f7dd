package trie

import (
	"errors"
	"fmt"
	"math/bits"
)

// Check verifies the structure of m, for tests: bitmaps agree with slices, entries are where their hash leads,
// no child could be folded into its parent, and the size is right.
func (m Map[K, V]) Check() error { return m.check(hashOf[K]) }

func (m Map[K, V]) check(hash func(K) uint64) error {
	count := 0
	if m.root != nil {
		if len(m.root.entries)+len(m.root.children) == 0 {
			return errors.New("an empty root is not nil")
		}
		if err := m.root.check(hash, 0, 0, &count); err != nil {
			return err
		}
	}
	if count != m.size {
		return fmt.Errorf("%d entries, but Len is %d", count, m.size)
	}
	return nil
}

func (n *node[K, V]) check(hash func(K) uint64, prefix uint64, shift uint, count *int) error {
	*count += len(n.entries)
	if shift >= listAt {
		if len(n.children) != 0 || len(n.entries) < 2 {
			return fmt.Errorf("a list has %d children and %d entries", len(n.children), len(n.entries))
		}
		return nil
	}
	if n.dataMap&n.childMap != 0 {
		return fmt.Errorf("slots %032b are both entry and child", n.dataMap&n.childMap)
	}
	if bits.OnesCount32(n.dataMap) != len(n.entries) || bits.OnesCount32(n.childMap) != len(n.children) {
		return errors.New("bitmaps and slices disagree")
	}
	below := uint64(1)<<shift - 1
	for i := range n.entries {
		h := hash(n.entries[i].key)
		if h&below != prefix || rank(n.dataMap, slotBit(h, shift)) != i || n.dataMap&slotBit(h, shift) == 0 {
			return fmt.Errorf("an entry at depth %d is not where its hash leads", shift/width)
		}
	}
	i := 0
	for slots := n.childMap; slots != 0; slots &= slots - 1 {
		slot := uint64(bits.TrailingZeros32(slots))
		child := n.children[i]
		if len(child.entries)+len(child.children) == 0 || len(child.entries) == 1 && len(child.children) == 0 {
			return errors.New("a child should have been folded into its parent")
		}
		if err := child.check(hash, prefix|slot<<shift, shift+width, count); err != nil {
			return err
		}
		i++
	}
	return nil
}
