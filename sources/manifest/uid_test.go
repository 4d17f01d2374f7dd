package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources/manifest"
)

// TestUIDsOfManifests: any text is a UID, as for the kubelet, unless a folder of that name is
// another one.
func TestUIDsOfManifests(t *testing.T) {
	for uid, accepted := range map[string]bool{
		"node-1:web": true, "a b": true, "ABC_d.e": true, ".hidden": true, "-rf": true, "é": true, "...": true, strings.Repeat("a", 253): true,
		"":  true, // one is made
		".": false, "..": false, "a/b": false, "/": false, `a\b`: false, "a\nb": false, "a\x00b": false, strings.Repeat("a", 254): false,
	} {
		text, err := json.Marshal(uid)
		require.NoError(t, err)
		data := strings.Replace(jsonPod("a"), `"name"`, `"uid":`+string(text)+`,"name"`, 1)
		for _, decoder := range []manifest.Decoder{fromFile, fromHTTP} {
			pods, rejected := decoder.Decode("m.yaml", []byte(data))
			require.Equal(t, accepted, len(pods) == 1 && len(rejected) == 0, "%q: %v", uid, rejected)
			if !accepted {
				require.Equal(t, []string{"metadata.uid"}, rejected[0].Fields())
			} else if uid != "" {
				require.Equal(t, uid, string(pods[0].UID))
			}
			pods, _ = likeKubelet(decoder).Decode("m.yaml", []byte(data))
			require.Len(t, pods, 1)
		}
	}
}
