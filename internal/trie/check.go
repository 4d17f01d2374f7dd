package trie

import (
	"fmt"
)

// Check verifies the structure of m, for tests: each entry is where its hash leads, once, with its
// tag; no branch has so few entries that they fit into a bucket; counts are right.
func (m Map[K, V]) Check(hash func(K) uint64) error {
	if m.root == nil {
		return nil
	}
	_, err := m.root.check(hash, 0, 0)
	return err
}

// check returns the number of entries in n. The hashes of their keys end in prefix.
func (n *node[K, V]) check(hash func(K) uint64, prefix uint64, shift uint) (int, error) {
	if n.slots == 0 {
		return int(n.count), n.checkEntries(hash, prefix, shift)
	}
	if shift >= listAt {
		return 0, fmt.Errorf("a branch at depth %d", shift/width)
	}
	sum, slot := 0, uint64(0)
	for _, kid := range n.kids() {
		for n.slots>>slot&1 == 0 {
			slot++
		}
		count, err := kid.check(hash, prefix|slot<<shift, shift+width)
		if err != nil {
			return 0, err
		}
		sum += count
		slot++
	}
	if sum != int(n.count) || sum <= bucketMax {
		return 0, fmt.Errorf("a branch of %d entries says %d", sum, n.count)
	}
	return sum, nil
}

func (n *node[K, V]) checkEntries(hash func(K) uint64, prefix uint64, shift uint) error {
	if n.count == 0 || n.count > bucketMax && shift < listAt {
		return fmt.Errorf("a bucket of %d entries at depth %d", n.count, shift/width)
	}
	for i, e := range n.entries() {
		h := hash(e.Key)
		if shift < listAt && h&(1<<shift-1) != prefix {
			return fmt.Errorf("an entry at depth %d is not where its hash leads", shift/width)
		}
		if n.tag(i) != tagOf(h) || n.position(tagOf(h), e.Key) != i {
			return fmt.Errorf("entry %d of %d has a wrong tag, or is there twice", i, n.count)
		}
	}
	return nil
}
