package wire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// TestAppendJSON: the API machinery's encoder is the source of the items.
func TestAppendJSON(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{map[string]any{"b": int64(1), "a": nil, "": true}, `{"":true,"a":null,"b":1}`},
		{[]any{int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(256), int64(1 << 40)},
			`[-9223372036854775808,9223372036854775807,-1,256,1099511627776]`},
		{[]any{1.0, 0.5, -2.25, 65504.0, 1e300, 5.960464477539063e-08, 3.1415, 1e6}, `[1.0,0.5,-2.25,65504.0,1e+300,5.960464477539063e-08,3.1415,1e+06]`},
		{"a\"b\\c\nd\x01é\u2028", "\"a\\\"b\\\\c\\nd\\u0001é\u2028\""},
		{"\xff", `"�"`},
		{[]byte("secret"), `"c2VjcmV0"`},
		{map[string]any{}, `{}`},
		{[]any{}, `[]`},
	} {
		item, err := direct.Marshal(test.value)
		require.NoError(t, err)
		got, err := wire.AppendJSON([]byte("x"), append([]byte(wire.CBORMagic), item...))
		require.NoError(t, err)
		require.Equal(t, "x"+test.want, string(got))
	}
}

// TestMembersAreSorted: servers shuffle them, and equal objects are equal texts nevertheless.
func TestMembersAreSorted(t *testing.T) {
	got, err := wire.AppendJSON(nil, []byte("\xbf\x61b\xa2\x61z\x01\x41y\x02\x41a\x03\x62aa\x81\xa0\xff"))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":3,"aa":[{}],"b":{"y":2,"z":1}}`, string(got))
	require.Equal(t, `{"a":3,"aa":[{}],"b":{"y":2,"z":1}}`, string(got))
}

func TestAppendJSONRefuses(t *testing.T) {
	for name, item := range map[string]string{
		"nothing":                    "",
		"half a head":                "\x19\x01",
		"half a string":              "\x43ab",
		"a reserved length":          "\x1c",
		"an undefined value":         "\xf7",
		"another simple value":       "\xe0",
		"a break alone":              "\xff",
		"something behind":           "\x01\x01",
		"more than 64 bits":          "\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
		"less than 64 bits":          "\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
		"an infinite number":         "\xf9\x7c\x00",
		"no number":                  "\xf9\x7e\x00",
		"a large number":             "\xc2\x41\x01",
		"a text that is not UTF-8":   "\x61\xff",
		"a number for a key":         "\xa1\x01\x01",
		"base64 of an array":         "\xd6\x80",
		"a member twice":             "\xa2\x61a\x01\x41a\x02",
		"a key without a value":      "\xbf\x61a\xff",
		"a chunk of another type":    "\x5f\x61a\xff",
		"an array that is cut":       "\x82\x01",
		"an array of many elements":  "\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a map of many members":      "\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x61a\x01",
		"arrays without an end":      strings.Repeat("\x81", 1<<20),
		"tags without an end":        strings.Repeat("\xd8\x20", 1<<20),
		"a length that is not there": "\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
	} {
		_, err := wire.AppendJSON(nil, []byte(item))
		require.Error(t, err, name)
	}
}

// TestAppendJSONOfObjects: the text of a real object decodes into that object.
func TestAppendJSONOfObjects(t *testing.T) {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "1", "a": "2"}, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{".":{},"f:labels":{}}}`)},
		}}},
	}
	item, err := direct.Marshal(pod)
	require.NoError(t, err)
	text, err := wire.AppendJSON(nil, item)
	require.NoError(t, err)
	var got corev1.Pod
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, pod, &got)
}

func TestEachCBORMember(t *testing.T) {
	item := "\xd9\xd9\xf7\xa2\x44type\x45ADDED\x46object\xa1\x61a\x82\x01\x02"
	got := map[string]string{}
	require.NoError(t, wire.EachCBORMember([]byte(item), func(key string, value []byte) error {
		text, err := wire.AppendJSON(nil, value)
		got[key] = string(text)
		return err
	}))
	require.Equal(t, map[string]string{"type": `"ADDED"`, "object": `{"a":[1,2]}`}, got)
	stopped := fmt.Errorf("stopped")
	require.Equal(t, stopped, wire.EachCBORMember([]byte(item), func(string, []byte) error { return stopped }))
	for i := range len(item) {
		require.Error(t, wire.EachCBORMember([]byte(item[:i]), func(string, []byte) error { return nil }), i)
	}
}

// FuzzCBOR: what becomes JSON is what the API machinery reads in the item, and the scanner finds
// its end wherever the stream is cut.
func FuzzCBOR(f *testing.F) {
	for _, value := range []any{
		map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "a", "labels": map[string]any{"x": "y"}}},
		[]any{nil, true, int64(-7), 1.5, 1e300, "text", []byte("bytes")}, strings.Repeat("x", 300),
	} {
		item, err := direct.Marshal(value)
		require.NoError(f, err)
		f.Add(item, uint16(3))
	}
	f.Add([]byte("\xd9\xd9\xf7\xbf\x61a\x9f\x5f\x41a\x40\xff\xff\xff"), uint16(5))
	f.Add([]byte("\xd5\x42ab\xd7\x41a"), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		var whole, pieces wire.CBORScanner
		n, done, err := whole.Feed(data)
		require.LessOrEqual(t, n, len(data))
		at := min(int(cut), len(data))
		m, doneEarly, cutErr := pieces.Feed(data[:at])
		if cutErr == nil && !doneEarly {
			rest, doneLate, lateErr := pieces.Feed(data[m:])
			m, doneEarly, cutErr = m+rest, doneLate, lateErr
		}
		require.Equal(t, done, doneEarly)
		require.Equal(t, err, cutErr)
		if done {
			require.Equal(t, n, m)
		}

		text, err := wire.AppendJSON(nil, data)
		if err != nil {
			return
		}
		require.True(t, done)
		require.Equal(t, len(data), n)
		require.True(t, utf8.Valid(text))
		var got, want any
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(text, &got), "%q", text)
		require.NoError(t, direct.Unmarshal(data, &want), "%q", text)
		require.Equal(t, clean(want), got)

		again, err := direct.Marshal(got)
		require.NoError(t, err)
		same, err := wire.AppendJSON(nil, again)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(same))
	})
}

// clean replaces what is not UTF-8 by U+FFFD, which JSON has no other form for.
func clean(value any) any {
	switch v := value.(type) {
	case string:
		return string([]rune(v))
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		for key, inner := range v {
			delete(v, key)
			v[string([]rune(key))] = clean(inner)
		}
	}
	return value
}

func TestCBORHead(t *testing.T) {
	for text, want := range map[string]struct {
		isMap bool
		count uint64
		open  bool
	}{"\xd9\xd9\xf7\xa2": {true, 2, false}, "\x99\x01\x00": {false, 256, false}, "\xbf": {true, math.MaxUint64, true}} {
		r := strings.NewReader(text)
		isMap, count, open, err := wire.CBORHead(r.ReadByte)
		require.NoError(t, err)
		require.Equal(t, want.isMap, isMap)
		require.Equal(t, want.count, count)
		require.Equal(t, want.open, open)
	}
	_, _, _, err := wire.CBORHead(strings.NewReader("\x61").ReadByte)
	require.ErrorIs(t, err, wire.ErrCBOR)
	_, _, _, err = wire.CBORHead(strings.NewReader("\xd9").ReadByte)
	require.ErrorIs(t, err, io.EOF)
}
