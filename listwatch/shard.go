package listwatch

import (
	"context"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/store"
)

// Shard selects one of count equal parts of a collection, for replicas that divide it among
// themselves: the objects that have the hash of their UID in the part. Parts are counted from 0,
// and each object is in the same one for its whole life.
//
// A server that shards sends the part alone (KEP-5866, alpha since Kubernetes 1.36). Any other one
// sends all objects, and does not say so. Those of the other parts are dropped as they come, which
// the log has once. Functions are asked for all objects, too.
//
// Nothing hands a part over: a replica that is gone has its part untended until another one takes
// it. Default: the whole collection. Shard panics unless index is at least 0 and below count.
func Shard(index, count int) FuncsOption {
	if index < 0 || index >= count {
		panic(fmt.Sprintf("listwatch: Shard: part %d of %d: give an index from 0 up to count-1", index, count))
	}
	bound := func(part int) string {
		if part == count {
			return "0x1" + strings.Repeat("0", hashDigits)
		}
		of, _ := bits.Div64(uint64(part), 0, uint64(count))
		return fmt.Sprintf("0x%0*x", hashDigits, of)
	}
	return shardOption(fmt.Sprintf("shardRange(object.metadata.uid, '%s', '%s')", bound(index), bound(index+1)))
}

// shardOption is the option of a selector. It panics if that is none.
func shardOption(selector string) FuncsOption {
	s, err := parseShard(selector)
	if err != nil {
		panic(err.Error())
	}
	return funcsOption(func(o *options) { o.shardSelector, o.shard = selector, s })
}

// shard is a selector of KEP-5866, parsed. Server and client must hash alike.
type shard struct {
	byNamespace bool
	ranges      []hashRange
	said        atomic.Bool // that the server does not shard
}

// hashRange has the hashes of a range.
type hashRange struct{ from, to hashBound }

// hashBound is a hash, or beyond all of them.
type hashBound struct {
	hash   uint64
	beyond bool
}

func (b hashBound) reachedBy(hash uint64) bool { return !b.beyond && hash >= b.hash }

// hashDigits are those of a hash, in hexadecimal.
const hashDigits = 16

var shardForm = regexp.MustCompile(`^\s*shardRange\(\s*object\.metadata\.(uid|namespace)\s*,\s*'0x([0-9a-f]{1,17})'\s*,\s*'0x([0-9a-f]{1,17})'\s*\)\s*$`)

// parseShard parses the form that API servers take.
func parseShard(selector string) (*shard, error) {
	s := &shard{}
	for i, part := range strings.Split(selector, "||") {
		found := shardForm.FindStringSubmatch(part)
		if found == nil {
			return nil, fmt.Errorf("listwatch: shard selector %q: %q is no shardRange(object.metadata.uid, '0x…', '0x…')", selector, part)
		}
		byNamespace := found[1] == "namespace"
		if i > 0 && byNamespace != s.byNamespace {
			return nil, fmt.Errorf("listwatch: shard selector %q: its ranges are of two fields", selector)
		}
		s.byNamespace = byNamespace
		s.ranges = append(s.ranges, hashRange{boundOf(found[2]), boundOf(found[3])})
	}
	return s, nil
}

// boundOf reads a bound as API servers do, which compare it with the digits of a hash as texts: one
// with fewer digits is below all hashes, and one with more is beyond them.
func boundOf(digits string) (b hashBound) {
	switch {
	case len(digits) > hashDigits:
		b.beyond = true
	case len(digits) == hashDigits:
		b.hash, _ = strconv.ParseUint(digits, 16, 64) // digits alone
	}
	return b
}

// has reports whether an object is of the shard.
func (s *shard) has(obj store.Object) bool {
	value := string(obj.GetUID())
	if s.byNamespace {
		value = obj.GetNamespace()
	}
	hash := hashOf(value)
	for _, r := range s.ranges {
		if r.from.reachedBy(hash) && !r.to.reachedBy(hash) {
			return true
		}
	}
	return false
}

// hashOf is FNV-1a of 64 bits.
func hashOf(value string) uint64 {
	hash := uint64(0xcbf29ce484222325)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * 0x100000001b3
	}
	return hash
}

// leavesOut reports whether an object is of another shard, and logs the first one: the server does
// not shard.
func (s *shard) leavesOut(ctx context.Context, obj store.Object) bool {
	if s == nil || s.has(obj) {
		return false
	}
	if !s.said.Swap(true) {
		klog.FromContext(ctx).Info("The server does not shard: the objects of other shards come, too, and are dropped", "first", store.KeyOf(obj))
	}
	return true
}

// shardItems leaves the objects of other shards out of a list.
func shardItems[T store.Object](ctx context.Context, s *shard, yield func(T, error) bool) func(T, error) bool {
	if s == nil {
		return yield
	}
	return func(obj T, err error) bool { return err == nil && s.leavesOut(ctx, obj) || yield(obj, err) }
}

// shardEvents leaves the objects of other shards out of a watch. None of them was ever told.
func shardEvents[T store.Object](ctx context.Context, s *shard, yield func(Event[T], error) bool) func(Event[T], error) bool {
	if s == nil {
		return yield
	}
	return func(event Event[T], err error) bool {
		return err == nil && event.Type != watch.Bookmark && s.leavesOut(ctx, event.Object) || yield(event, err)
	}
}

// shardMeta is the metadata of a list of the shard. The server's count may be that of all objects.
func shardMeta(s *shard, meta metav1.ListMeta) metav1.ListMeta {
	if s != nil {
		meta.RemainingItemCount = nil
	}
	return meta
}
