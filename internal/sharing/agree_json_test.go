package sharing_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/sharing"
)

// In this file sigs.k8s.io/json is the judge, as it is of apimachinery's serializer.

// agreeTyped decodes data twice with the memo and compares both with the plain decoder.
func agreeTyped(t *testing.T, memo *sharing.Memo, gvk schema.GroupVersionKind, data []byte) []made {
	t.Helper()
	plain := newObject(t, gvk)
	plainErr := kjson.UnmarshalCaseSensitivePreserveInts(data, plain)
	var all []made
	for range 2 {
		ours, input := newObject(t, gvk), slices.Clone(data)
		err := memo.UnmarshalTyped(input, ours)
		clear(input) // the buffer is the caller's again
		require.Equal(t, plainErr, err, "%s: %s", gvk, data)
		if err == nil {
			requireSame(t, gvk, plain, ours)
			all = append(all, made{ours, plain})
		}
	}
	return all
}

// agreeTree does the same for unstructured objects.
func agreeTree(t *testing.T, memo *sharing.Memo, data []byte) (ours, plain map[string]any) {
	t.Helper()
	plainErr := kjson.UnmarshalCaseSensitivePreserveInts(data, &plain)
	for range 2 {
		var err error
		input := slices.Clone(data)
		ours, err = memo.UnmarshalTree(input)
		clear(input)
		require.Equal(t, plainErr, err, "%s", data)
		if err == nil && !reflect.DeepEqual(plain, ours) {
			require.Equal(t, plain, ours, "%s", data)
		}
	}
	return ours, plain
}

func TestEveryTypeDecodesFromJSONAsItDoesPlainly(t *testing.T) {
	random := source(t)
	fill := filler(random)
	memo := newMemo(t)
	passes(t, func() (decodes int) {
		var all []made
		for _, gvk := range kinds() {
			obj := newObject(t, gvk)
			if _, ok := obj.(message); !ok || strings.HasSuffix(gvk.Kind, "Options") {
				continue
			}
			for range 3 {
				fill(obj)
				data, err := json.Marshal(obj)
				require.NoError(t, err)
				all = append(all, agreeTyped(t, memo, gvk, data)...)
				for range 6 {
					all = append(all, agreeTyped(t, memo, gvk, mutatedJSON(random, data))...)
				}
			}
			decodes += 3 * 7 * 2
		}
		requireUnchanged(t, all)
		return decodes
	})
	require.Positive(t, memo.Stats().Hits)
}

func TestEveryTypeDecodesIntoATreeAsItDoesPlainly(t *testing.T) {
	random := source(t)
	fill := filler(random)
	memo := newMemo(t)
	passes(t, func() (decodes int) {
		var ours, plain []map[string]any
		for _, gvk := range kinds() {
			obj := newObject(t, gvk)
			fill(obj)
			data, err := json.Marshal(obj)
			require.NoError(t, err)
			for i := range 8 {
				input := data
				if i > 0 {
					input = mutatedJSON(random, data)
				}
				a, b := agreeTree(t, memo, input)
				if a != nil && b != nil {
					a["kind"] = "written by its owner" // as SetGroupVersionKind does
					b["kind"] = "written by its owner"
					ours, plain = append(ours, a), append(plain, b)
				}
			}
			decodes += 8 * 2
		}
		for i := range ours {
			require.True(t, reflect.DeepEqual(plain[i], ours[i]), "an object changed after it was decoded")
		}
		return decodes
	})
	require.Positive(t, memo.Stats().Hits)
}

// What encoding/json has rules for that are easily missed.
func TestOddJSONDecodesAsItDoesPlainly(t *testing.T) {
	memo := newMemo(t)
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for _, spec := range []string{
		`null`, `[]`, `7`, `"x"`, `{}`, ` { } `, `{"x":1,}`, `{,}`, `{"nodeName":"a","nodeName":"b"}`, `{"nodename":"a"}`, `{"NodeName":"a"}`,
		`{"nodeName":null}`, `{"nodeName":"\u00e4\ud83d\ude00\ud800"}`, "{\"nodeName\":\"\xff\"}", "{\"nodeName\":\"a\tb\"}", `{"nodeName":3}`, `{"node\u004eame":"a"}`,
		`{"priority":1}`, `{"priority":-1}`, `{"priority":-0}`, `{"priority":01}`, `{"priority":1.0}`, `{"priority":1e2}`, `{"priority":2147483648}`, `{"priority":null}`,
		`{"hostNetwork":true}`, `{"hostNetwork":"true"}`, `{"hostNetwork":null}`, `{"hostNetwork":tru}`,
		`{"containers":null}`, `{"containers":[]}`, `{"containers":[null]}`, `{"containers":[{}]}`, `{"containers":[{"name":"a"},{"name":"a"}]}`, `{"containers":{}}`,
		`{"containers":[{"name":"a"}}`, `{"containers":[{"name":"a"}`, `{"containers":[[]]}`, `{"containers":[{"name":"a"} {"name":"b"}]}`,
		`{"containers":[{"name":"a"}],"containers":[{"image":"b"}]}`, `{"unknown":{"a":[1,2,{"b":}]}}`, `{"unknown":[1,2]}`, `{"securityContext":{"runAsUser":0}}`,
		`{"volumes":[{"name":"a","emptyDir":{}},{"name":"b","secret":{"secretName":"s"}}]}`, `{"nodeSelector":{"a":"b","a":"c"}}`, `{"overhead":{"cpu":1,"memory":"1Gi"}}`,
		`{"nodeName":"a"}]`, `{"nodeName":"a"`, `{"nodeName" "a"}`, `{"nodeName":}`, `{"nodeName":"a"x}`, `{"tolerations":[{"tolerationSeconds":9223372036854775807}]}`,
		`{"n":9223372036854775807}`, `{"n":9223372036854775808}`, `{"n":-9223372036854775809}`, `{"n":1.5,"m":1E400}`, `{"n":[1,"a",null,true,{"b":[]}]}`, `{"n":-}`, `{"n":00}`,
		"{\"\xff\":1}", `{"a\"b":1,"":2}`, `{"deep":` + strings.Repeat(`[`, 600) + strings.Repeat(`]`, 600) + `}`,
	} {
		data := []byte(`{"metadata":{"name":"a","labels":{"a":"b"}},"spec":` + spec + `}`)
		agreeTyped(t, memo, pod, data)
		agreeTree(t, memo, data)
	}
	for _, data := range []string{``, ` `, `null`, `{}`, `[]`, `{} `, `{}{}`, `{} x`, `"a"`, `1`, `{"a":1}}`, `{"a"`, `{"`, `{]`, "\xef\xbb\xbf{}"} {
		agreeTyped(t, memo, pod, []byte(data))
		agreeTree(t, memo, []byte(data))
	}
}

// mutatedJSON is data with something done to it.
func mutatedJSON(random *rand.Rand, data []byte) []byte {
	switch random.Intn(6) {
	case 0:
		return damaged(random, data)
	case 1:
		return data[:random.Intn(len(data)+1)]
	case 2: // another byte of structure
		data = slices.Clone(data)
		data[random.Intn(len(data))] = `{}[],:"\ 0n`[random.Intn(11)]
		return data
	case 3: // a member twice, or two merged into one
		return bytes.Replace(data, []byte(`,"`), []byte(`,"x":{"a":[1,2.5,null]},"`), 1+random.Intn(3))
	case 4:
		return bytes.ReplaceAll(data, []byte(`,"`), []byte(" ,\n\"")) // the same with white space
	}
	var any any
	if json.Unmarshal(data, &any) != nil {
		return data
	}
	sorted, _ := json.Marshal(any) // the same in another order
	return sorted
}
