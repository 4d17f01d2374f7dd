package sharing_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// seedPod is small: the fuzzer's pace falls with the size of its seeds.
const seedPod = `{"metadata":{"name":"a","labels":{"k":"v"},"managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:x":{}}}]},
"spec":{"containers":[{"name":"c","env":[{"name":"E","value":"v"}],"resources":{"limits":{"cpu":"1"}}},{"name":"c"}],"priority":1,
"securityContext":{"runAsUser":0,"supplementalGroups":[1,2]}},"status":{"podIPs":[{"ip":"10.0.0.1"}],"startTime":"2026-01-02T03:04:05Z"}}`

// seeds are two inputs each: what the first leaves in the memo must not change the second.
func seeds(f *testing.F, data []byte) {
	f.Helper()
	random := rand.New(rand.NewSource(1))
	for range 10 {
		f.Add(data, rewritten(random, data, 0))
		f.Add(data, damaged(random, data))
	}
}

func FuzzProtobuf(f *testing.F) {
	pod := newObject(f, podKind).(message)
	require.NoError(f, json.Unmarshal([]byte(seedPod), pod))
	data, err := pod.Marshal()
	require.NoError(f, err)
	seeds(f, data)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		memo := newMemo(t)
		agree(t, memo, podKind, first)
		agree(t, memo, podKind, second)
		agree(t, memo, podKind, first)
	})
}

func FuzzJSON(f *testing.F) {
	seeds(f, []byte(seedPod))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		memo := newMemo(t)
		for _, data := range [][]byte{first, second, first} {
			agreeTyped(t, memo, podKind, data)
			agreeTree(t, memo, data)
		}
	})
}
