package sharing_test

import (
	"encoding/binary"
	"iter"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/internal/sharing"
)

// In this file the generated code is the judge, for every type of client-go's scheme that has any.

// message is an API type with generated protobuf code.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// kinds are the types of the scheme, in an order that repeats.
func kinds() (all []schema.GroupVersionKind) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		all = append(all, gvk)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all
}

func newObject(t testing.TB, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	require.NoError(t, err)
	return obj
}

func newMemo(t testing.TB) *sharing.Memo {
	t.Helper()
	memo, err := sharing.New()
	require.NoError(t, err)
	memo.NeverRest()
	return memo
}

// source is a random source whose seed is printed where the test fails.
func source(t *testing.T) *rand.Rand {
	t.Helper()
	seed := time.Now().UnixNano()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewSource(seed))
}

func filler(random *rand.Rand) func(obj any) {
	f := fuzzer.FuzzerFor(metafuzzer.Funcs, random, scheme.Codecs)
	return func(obj any) { f.Fill(obj) }
}

// messages has each type with generated code, and a filled object of it in bytes.
func messages(t *testing.T, fill func(obj any)) iter.Seq2[schema.GroupVersionKind, []byte] {
	return func(yield func(schema.GroupVersionKind, []byte) bool) {
		for _, gvk := range kinds() {
			obj, ok := newObject(t, gvk).(message)
			if !ok {
				continue
			}
			fill(obj)
			data, err := obj.Marshal()
			require.NoError(t, err)
			if !yield(gvk, data) {
				return
			}
		}
	}
}

// made is an object that a memo has made, with what it must be for as long as it lives.
type made struct{ ours, plain runtime.Object }

// agree decodes data twice with the memo, then three times as a change: of the last object of this
// kind, and of an object that is equal. It compares all with the generated code.
func agree(t *testing.T, memo *sharing.Memo, gvk schema.GroupVersionKind, data []byte) []made {
	t.Helper()
	plain := newObject(t, gvk).(message)
	plainErr := plain.Unmarshal(slices.Clone(data))
	var all []made
	var last any
	var notes sharing.Notes
	for i := range 5 {
		ours, input := newObject(t, gvk).(message), slices.Clone(data)
		var err error
		if i < 2 {
			err = memo.Unmarshal(input, ours)
		} else {
			notes, err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, input, ours)
			last = ours
		}
		for i := range input {
			input[i] = 0xff // the buffer is the caller's again
		}
		require.Equal(t, plainErr == nil, err == nil, "%s: plain %v, ours %v", gvk, plainErr, err)
		if err == nil {
			requireSame(t, gvk, plain, ours)
			all = append(all, made{ours, plain})
		}
	}
	return all
}

// requireSame is require.Equal without its cost where nothing is wrong.
func requireSame(t *testing.T, gvk schema.GroupVersionKind, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got, gvk.String())
	}
}

// passes repeats a pass, which returns its number of decodes, until there were as many as
// TRIBUTARY_DECODES says.
func passes(t *testing.T, pass func() (decodes int)) {
	t.Helper()
	wanted := 0
	if text := os.Getenv("TRIBUTARY_DECODES"); text != "" {
		var err error
		wanted, err = strconv.Atoi(text)
		require.NoError(t, err, "TRIBUTARY_DECODES")
	}
	decodes := pass()
	for decodes < wanted {
		decodes += pass()
	}
	t.Logf("%d decodes", decodes)
}

func TestEveryTypeDecodesAsItsGeneratedCodeDoes(t *testing.T) {
	random := source(t)
	fill := filler(random)
	memo := newMemo(t)
	passes(t, func() (decodes int) {
		var all []made
		types := 0
		for _, gvk := range kinds() {
			obj, ok := newObject(t, gvk).(message)
			if !ok {
				continue
			}
			types++
			for range 5 {
				fill(obj)
				data, err := obj.Marshal()
				require.NoError(t, err)
				all = append(all, agree(t, memo, gvk, data)...)
				for range 10 {
					all = append(all, agree(t, memo, gvk, mutated(random, data))...)
				}
			}
		}
		require.Greater(t, types, 400)
		requireUnchanged(t, all)
		return types * 5 * 11 * 5
	})
	require.Positive(t, memo.Stats().Hits)
}

func requireUnchanged(t *testing.T, all []made) {
	t.Helper()
	for _, m := range all {
		require.True(t, reflect.DeepEqual(m.plain, m.ours), "%T changed after it was decoded", m.ours)
	}
}

// mutated is data with something done to it that a message may have and an API server does not
// write, or that no message may have.
func mutated(random *rand.Rand, data []byte) []byte {
	switch random.Intn(4) {
	case 0:
		return damaged(random, data)
	case 1:
		return data[:random.Intn(len(data)+1)]
	}
	return rewritten(random, data, 0)
}

func damaged(random *rand.Rand, data []byte) []byte {
	data = slices.Clone(data)
	for range 1 + random.Intn(3) {
		if len(data) > 0 {
			data[random.Intn(len(data))] = byte(random.Intn(256))
		}
	}
	return data
}

// rewritten takes a message apart into its fields and puts them together otherwise: in another
// order, twice, in parts, with unknown fields and groups between them, at any depth.
func rewritten(random *rand.Rand, data []byte, depth int) []byte {
	fields, ok := split(data)
	if !ok || depth > 6 {
		return data
	}
	for i, f := range fields {
		if f.wire == 2 && random.Intn(3) == 0 {
			fields[i].value = rewritten(random, f.value, depth+1)
		}
	}
	switch random.Intn(6) {
	case 0:
		random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	case 1:
		if len(fields) > 0 {
			i := random.Intn(len(fields))
			fields = slices.Insert(fields, random.Intn(len(fields)), fields[i])
		}
	case 2:
		fields = slices.Insert(fields, random.Intn(len(fields)+1), wireField{number: 900, wire: 2, value: []byte("unknown")})
	case 3: // an empty group
		fields = slices.Insert(fields, random.Intn(len(fields)+1), wireField{number: 901, wire: 3, value: []byte{0xac, 0x38}})
	case 4:
		if len(fields) > 0 {
			i := random.Intn(len(fields))
			fields = slices.Delete(fields, i, i+1)
		}
	}
	return joined(fields)
}

func joined(fields []wireField) (out []byte) {
	for _, f := range fields {
		out = binary.AppendUvarint(out, uint64(f.number)<<3|uint64(f.wire))
		if f.wire == 2 {
			out = binary.AppendUvarint(out, uint64(len(f.value)))
		}
		out = append(out, f.value...)
	}
	return out
}

type wireField struct {
	number, wire int
	value        []byte
}

func split(data []byte) (fields []wireField, ok bool) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 {
			return nil, false
		}
		data = data[n:]
		f := wireField{number: int(tag >> 3), wire: int(tag & 7)}
		size := 0
		switch f.wire {
		case 0:
			_, size = binary.Uvarint(data)
		case 2:
			length, head := binary.Uvarint(data)
			if head <= 0 || length > uint64(len(data)-head) {
				return nil, false
			}
			data, size = data[head:], int(length)
		}
		if size <= 0 && f.wire != 2 || size > len(data) {
			return nil, false
		}
		f.value, data = data[:size], data[size:]
		fields = append(fields, f)
	}
	return fields, true
}
