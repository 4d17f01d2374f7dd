package listwatch_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// follow lists into a store, and then applies a watch until it ends.
func follow[T store.Object](t *testing.T, source listwatch.ListerWatcher[T], into *store.Indexer[T]) {
	listed, meta, errs := readList(source.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.NoError(t, into.Replace(store.Items(listed...), store.At(meta.ResourceVersion)))
	for e, err := range source.Watch(t.Context(), metav1.ListOptions{}) {
		require.NoError(t, err)
		if e.Type == watch.Deleted {
			require.NoError(t, into.Delete(e.Object))
		} else {
			require.NoError(t, into.Update(e.Object))
		}
	}
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // empties the pools too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const largeObjects = 100

// requireNoMoreThanStored follows a collection of large objects while they are updated, each time
// with new content.
func requireNoMoreThanStored[T store.Object](
	t *testing.T, media string, size, updates int, large func(i, version int) T, list func([]T) []byte, source func(*http.HandlerFunc) *listwatch.ListWatch[T],
) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			var all []T
			for i := range largeObjects {
				all = append(all, large(i, 1))
			}
			answer(http.StatusOK, media, list(all))(w, r)
			return
		}
		w.Header().Set("Content-Type", media)
		for n := range updates {
			_, _ = w.Write(frames(t, media, v1Version, watch.Event{Type: watch.Modified, Object: large(n%largeObjects, n+2)}))
		}
	})
	copied := store.NewIndexer[T]()
	lw := source(&handler)
	before := heap()
	follow(t, lw.Holding(func(key string) (T, bool) { return copied.Snapshot().Get(key) }), copied)
	held := heap() - before
	require.Equal(t, largeObjects, copied.Snapshot().Len())
	require.Less(t, float64(held), 1.05*float64(size*largeObjects), "%d KiB beside what is stored", (int(held)-size*largeObjects)>>10)
	runtime.KeepAlive(lw)
}

// skipUnderRace skips a test that measures the heap.
func skipUnderRace(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector holds memory of its own: go test ./listwatch")
	}
}

func TestLargeSecretsAreHeldOnce(t *testing.T) {
	skipUnderRace(t)
	const size = 500 << 10
	// Encoding JSON is slow in this test.
	for media, updates := range map[string]int{protobufType: 3000, jsonType: 200} {
		t.Run(media, func(t *testing.T) {
			value := make([]byte, size)
			random := rand.NewChaCha8([32]byte{})
			_, _ = random.Read(value)
			requireNoMoreThanStored(t, media, size, updates, func(i, version int) *corev1.Secret {
				copy(value, fmt.Sprintf("%020d", version))
				return &corev1.Secret{ObjectMeta: large(i, version), Data: map[string][]byte{"value": append([]byte(nil), value...)}}
			}, func(all []*corev1.Secret) []byte {
				list := &corev1.SecretList{}
				for _, s := range all {
					list.Items = append(list.Items, *s)
				}
				return encode(t, media, v1Version, list)
			}, func(handler *http.HandlerFunc) *listwatch.ListWatch[*corev1.Secret] {
				return listwatch.FromClient[corev1.Secret](clientset(t, serve(t, *handler)).CoreV1().RESTClient(), "secrets")
			})
		})
	}
}

func TestLargeConfigMapsAreHeldOnce(t *testing.T) {
	skipUnderRace(t)
	const size = 900 << 10
	for parts, updates := range map[int]int{1: 3000, 450: 500} {
		t.Run(fmt.Sprint(parts, " keys"), func(t *testing.T) {
			value := make([]byte, size/parts)
			for i := range value {
				value[i] = byte('a' + rand.IntN(26))
			}
			requireNoMoreThanStored(t, protobufType, size, updates, func(i, version int) *corev1.ConfigMap {
				c := &corev1.ConfigMap{ObjectMeta: large(i, version), Data: map[string]string{}}
				for part := range parts {
					copy(value, fmt.Sprintf("%010d%010d", part, version))
					c.Data[fmt.Sprint("key-", part)] = string(value)
				}
				return c
			}, func(all []*corev1.ConfigMap) []byte {
				list := &corev1.ConfigMapList{}
				for _, c := range all {
					list.Items = append(list.Items, *c)
				}
				return encode(t, protobufType, v1Version, list)
			}, func(handler *http.HandlerFunc) *listwatch.ListWatch[*corev1.ConfigMap] {
				return listwatch.FromClient[corev1.ConfigMap](clientset(t, serve(t, *handler)).CoreV1().RESTClient(), "configmaps")
			})
		})
	}
}

// TestWhatNeverRepeatsTakesNoMoreThanPlainDecoding: of a small collection of pods that have no text
// in common, nothing is remembered, in a list or in two changes of each.
func TestWhatNeverRepeatsTakesNoMoreThanPlainDecoding(t *testing.T) {
	skipUnderRace(t)
	const pods = 1000
	random := rand.New(rand.NewPCG(1, 2))
	own := func() string { return unlikely(random) }
	unlike := func(i, version int) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: large(i, version)}
		pod.Labels, pod.Annotations = map[string]string{own(): own(), own(): own()}, map[string]string{own(): own()}
		for range 3 {
			c := corev1.Container{Name: own(), Image: own(), Args: []string{own(), own()}, WorkingDir: own()}
			for range 8 {
				c.Env = append(c.Env, corev1.EnvVar{Name: own(), Value: own()})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: own(), ContainerID: own()})
		}
		return pod
	}
	list := podList(0)
	for i := range pods {
		list.Items = append(list.Items, *unlike(i, i+1))
	}
	var changes []watch.Event
	for n := range 2 * pods {
		changes = append(changes, watch.Event{Type: watch.Modified, Object: unlike(n*7%pods, pods+n+1)})
	}
	handler := answerBoth(protobufType, encode(t, protobufType, v1Version, list), frames(t, protobufType, v1Version, changes...))
	client := clientset(t, serve(t, handler)).CoreV1().RESTClient()
	held := func(options ...listwatch.Option) uint64 {
		copied := store.NewIndexer[*corev1.Pod]()
		before := heap()
		lw := listwatch.FromClient[corev1.Pod](client, "pods", options...)
		follow(t, lw.Holding(func(key string) (*corev1.Pod, bool) { return copied.Snapshot().Get(key) }), copied)
		held := heap() - before
		require.Equal(t, pods, copied.Snapshot().Len())
		runtime.KeepAlive(lw)
		return held
	}
	held() // connections
	plain, shared := held(listwatch.WithoutSharing()), held()
	t.Logf("%d bytes, %d with sharing", plain, shared)
	require.Less(t, float64(shared), 1.05*float64(plain), "1.28 if each part is remembered")
}

// unlikely is a text of 32 letters.
func unlikely(random *rand.Rand) string {
	text := make([]byte, 32)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

func large(i, version int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("large-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: fmt.Sprint(version)}
}

// Nothing of a Secret outlives its deletion, in whatever form it was read.
func TestADeletedSecretIsForgotten(t *testing.T) {
	secret := func(i int) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: large(i, i+1),
			Data: map[string][]byte{"password": []byte("the password of a database, which is long")},
		}
	}
	watched := func(media string) http.HandlerFunc {
		list := &corev1.SecretList{Items: []corev1.Secret{*secret(0)}}
		list.APIVersion, list.Kind = "v1", "SecretList"
		modified, deleted := secret(0), secret(0)
		modified.ResourceVersion, deleted.ResourceVersion = "7", "8"
		return answerBoth(media, encode(t, media, v1Version, list), frames(t, media, v1Version,
			watch.Event{Type: watch.Modified, Object: modified}, watch.Event{Type: watch.Deleted, Object: deleted}))
	}
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			client := clientset(t, serve(t, watched(media))).CoreV1().RESTClient()
			requireForgotten(t, listwatch.FromClient[corev1.Secret](client, "secrets"), func(s *corev1.Secret) *byte {
				return &s.Data["password"][0]
			})
		})
	}
	t.Run("unstructured", func(t *testing.T) {
		client := clientset(t, serve(t, watched(jsonType))).CoreV1().RESTClient()
		requireForgotten(t, listwatch.FromClient[unstructured.Unstructured](client, "secrets"), func(u *unstructured.Unstructured) *byte {
			return unsafe.StringData(u.Object["data"].(map[string]any)["password"].(string))
		})
	})
}

func requireForgotten[T store.Object](t *testing.T, lw *listwatch.ListWatch[T], valueOf func(T) *byte) {
	var values []weak.Pointer[byte]
	func() {
		for obj, err := range lw.List(t.Context(), metav1.ListOptions{}).Items {
			require.NoError(t, err)
			values = append(values, weak.Make(valueOf(obj)))
		}
		for e, err := range lw.Watch(t.Context(), metav1.ListOptions{}) {
			require.NoError(t, err)
			values = append(values, weak.Make(valueOf(e.Object)))
		}
	}()
	heap()
	require.Len(t, values, 3)
	for i, value := range values {
		require.Nil(t, value.Value(), "value %d", i)
	}
	runtime.KeepAlive(lw)
}

// TestWhatIsGoneIsForgotten: of a cluster's Jobs ten pods stay, and their memory with them. Each
// job's pods share what no other job has.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	skipUnderRace(t)
	const pods, left = 4000, 10
	list := podsOfJobs(pods)
	var gone []watch.Event
	for i := range pods - left {
		pod := list.Items[i].DeepCopy()
		pod.ResourceVersion = fmt.Sprint(pods + i + 1)
		gone = append(gone, watch.Event{Type: watch.Deleted, Object: pod})
	}
	handler := answerBoth(protobufType, encode(t, protobufType, v1Version, list), frames(t, protobufType, v1Version, gone...))
	client := clientset(t, serve(t, handler)).CoreV1().RESTClient()
	held := func(options ...listwatch.Option) int {
		copied := store.NewIndexer[*corev1.Pod]()
		before := heap()
		lw := listwatch.FromClient[corev1.Pod](client, "pods", options...)
		follow(t, lw.Holding(func(key string) (*corev1.Pod, bool) { return copied.Snapshot().Get(key) }), copied)
		held := int(heap()) - int(before)
		require.Equal(t, left, copied.Snapshot().Len())
		runtime.KeepAlive(lw)
		return held
	}
	held() // connections
	plain, shared := held(listwatch.WithoutSharing()), held()
	t.Logf("%d KB, %d KB with sharing", plain/1000, shared/1000)
	require.Less(t, shared, plain+300_000, "the memory of a living kind")
}

// podsOfJobs are alike by fours, and share nothing beside that.
func podsOfJobs(n int) *corev1.PodList {
	random := rand.New(rand.NewPCG(1, 2))
	own := func() string { return unlikely(random) }
	list := podList(0)
	for i := range n {
		pod := &corev1.Pod{}
		if i%4 > 0 {
			pod = list.Items[i-1].DeepCopy()
		}
		for len(pod.Spec.Containers) < 3 {
			c := corev1.Container{Name: own(), Image: own(), Args: []string{own(), own()}, WorkingDir: own()}
			for range 8 {
				c.Env = append(c.Env, corev1.EnvVar{Name: own(), Value: own()})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
		pod.ObjectMeta = large(i, i+1)
		list.Items = append(list.Items, *pod)
	}
	return list
}

// TestAProjectionTakesNoMoreThanPlainDecoding: nothing stays of what the projection drops, unless
// another copy has it.
func TestAProjectionTakesNoMoreThanPlainDecoding(t *testing.T) {
	skipUnderRace(t)
	const pods = 2000
	client := clientset(t, serve(t, answerBoth(protobufType, encode(t, protobufType, v1Version, podsOfJobs(pods)), nil))).CoreV1().RESTClient()
	held := func(options ...listwatch.Option) int {
		copied := store.NewIndexer[*corev1.Pod]()
		before := heap()
		lw := listwatch.Project(listwatch.FromClient[corev1.Pod](client, "pods", options...), func(p *corev1.Pod) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: p.ObjectMeta}
		}, listwatch.ReadOnly())
		follow(t, lw, copied)
		held := int(heap()) - int(before)
		require.Equal(t, pods, copied.Snapshot().Len())
		runtime.KeepAlive(lw)
		return held
	}
	held() // connections
	plain, shared := held(listwatch.WithoutSharing()), held()
	t.Logf("%d KB, %d KB with sharing", plain/1000, shared/1000)
	require.Less(t, shared, plain+300_000)

	whole := listwatch.FromClient[corev1.Pod](client, "pods")
	copied := store.NewIndexer[*corev1.Pod]()
	follow(t, whole, copied)
	known := whole.Sharing().Entries
	held()
	// What no object has any more may be forgotten meanwhile.
	require.Greater(t, whole.Sharing().Entries, known/2, "a copy of whole objects goes on sharing")
	runtime.KeepAlive(copied)
}
