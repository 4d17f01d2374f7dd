package packed_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

var (
	oddUIDs = []string{
		"", "u", "0a1b2c3d-0000-4000-8000-00000000cafe", "0A1B2C3D-0000-4000-8000-00000000CAFE", "0a1b2c3d-0000-4000-8000-00000000cafE",
		"0a1b2c3d-0000-4000-8000-00000000caf", "0a1b2c3d-0000-4000-8000-00000000cafe1", "0a1b2c3d00000-4000-8000-00000000cafe", "0a1b2c3d-0000-4000-8000-00000000cafg",
		"0a1b2c3d00004000800000000000cafe", strings.Repeat("-", 36), strings.Repeat("0", 36), strings.Repeat("long", 100), "ü-\x00",
	}
	oddVersions = []string{
		"", "0", "7", "007", "00", "+7", "-7", " 7", "7 ", "7.0", "0x7", "1000000000", "9999999999999999999", "10000000000000000000", "18446744073709551615",
		"18446744073709551616", "٧", "a", ":", "/", strings.Repeat("9", 300), "\x00",
	}
)

// requireIdentity stores an object, and reads its identity in each way.
func requireIdentity(t *testing.T, namespace, name, uid, version string) {
	t.Helper()
	want := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: version}}
	maps := packed.New[corev1.ConfigMap]()
	require.NoError(t, maps.Add(&want))
	key := store.KeyOf(&want)
	entry, ok := maps.Entries().Get(key)
	require.True(t, ok)
	require.Equal(t, []string{namespace, name, uid, version}, []string{entry.GetNamespace(), entry.GetName(), string(entry.GetUID()), entry.GetResourceVersion()})
	encoded, ok := maps.Encoded().(interface {
		Get(key string) (*store.Encoded, bool)
	}).Get(key)
	require.True(t, ok)
	require.Equal(t, want.ObjectMeta, encoded.ObjectMeta)
	got, ok := maps.Snapshot().Get(key)
	require.True(t, ok)
	require.Equal(t, want, *got)

	require.NoError(t, maps.Add(want.DeepCopy()))
	same, _ := maps.Entries().Get(key)
	if uid != "" && version != "" {
		require.Same(t, entry, same, "it is the same state")
	}
	other := want.DeepCopy()
	other.ResourceVersion = version + "0"
	require.NoError(t, maps.Add(other))
	same, _ = maps.Entries().Get(key)
	require.NotSame(t, entry, same)
	require.Equal(t, version+"0", same.GetResourceVersion())
	require.Equal(t, version, entry.GetResourceVersion(), "an entry never changes")
}

// TestOddIdentitiesComeBack: UIDs and versions in their usual form are kept in few bytes, and all
// others as they are.
func TestOddIdentitiesComeBack(t *testing.T) {
	for _, uid := range oddUIDs {
		for _, version := range oddVersions {
			requireIdentity(t, "team", "object", uid, version)
		}
	}
	requireIdentity(t, "", "cluster-wide", oddUIDs[2], "7")
	requireIdentity(t, "", "with/slash", oddUIDs[2], "7")
	requireIdentity(t, "a", "b/c", oddUIDs[2], "7")
	requireIdentity(t, strings.Repeat("n", 300), strings.Repeat("m", 300), oddUIDs[2], "7")
}

// TestEveryIdentityComesBack: at random, near the usual forms.
func TestEveryIdentityComesBack(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	text := func(letters string, longest int) string {
		b := make([]byte, random.Intn(longest+1))
		for i := range b {
			b[i] = letters[random.Intn(len(letters))]
		}
		return string(b)
	}
	for range 2000 {
		uid := fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", random.Uint32(), random.Intn(1<<16), random.Intn(1<<16), random.Intn(1<<16), random.Int63n(1<<48))
		if at := random.Intn(2 * len(uid)); at < len(uid) {
			uid = uid[:at] + text("0123456789abcdefABCDEFg-", 2) + uid[at+random.Intn(2):]
		}
		requireIdentity(t, text("ab-", 5), "n"+text("ab-./", 5), uid, text("0123456789", 21))
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add("team", "object", oddUIDs[2], "1000000000")
	f.Add("", "object", oddUIDs[3], "007")
	f.Fuzz(func(t *testing.T, namespace, name, uid, version string) {
		if name == "" || strings.Contains(namespace, "/") {
			t.Skip("no such object")
		}
		for _, text := range []*string{&namespace, &name, &uid, &version} {
			*text = strings.ToValidUTF8(*text, "?")
		}
		requireIdentity(t, namespace, name, uid, version)
	})
}

// TestAKeyIsKeptOnce: the entries of all states of an object and the store have one text.
func TestAKeyIsKeptOnce(t *testing.T) {
	pods := packed.New[corev1.Pod]()
	var items []*corev1.Pod
	for i := range 100 {
		items = append(items, somePod(i, 1))
	}
	require.NoError(t, pods.Replace(store.Items(items...), store.At("1")))
	requireOwnKeys(t, pods)
	require.NoError(t, pods.Add(somePod(500, 1)))
	require.NoError(t, pods.Update(somePod(7, 2)))
	for i := range items {
		items[i] = somePod(i, 3)
	}
	require.NoError(t, pods.Replace(store.Items(append(items, somePod(501, 1))...), store.At("3")))
	requireOwnKeys(t, pods)
}

func requireOwnKeys(t *testing.T, pods *packed.Store[*corev1.Pod]) {
	t.Helper()
	for key, entry := range pods.Snapshot().Entries().All() {
		own := entry.(interface{ Key() string }).Key()
		require.Equal(t, key, own)
		require.Same(t, unsafe.StringData(key), unsafe.StringData(own))
	}
}
