package etcd_test

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/etcd"
)

// fill writes n pods, with values large enough for many answers.
func fill(t testing.TB, client *clientv3.Client, n int) (revision int64) {
	t.Helper()
	return fillWith(t, client, n, 4000)
}

// fillWith is fill with pods of some more bytes than size.
func fillWith(t testing.TB, client *clientv3.Client, n, size int) (revision int64) {
	t.Helper()
	const operations = 100 // of one transaction; etcd takes 128
	var puts []clientv3.Op
	for i := range n {
		p := pod(fmt.Sprintf("pod-%05d", i), labelled("number", fmt.Sprint(i)))
		p.Annotations = map[string]string{"note": fmt.Sprintf("%0*d", size, i)}
		if puts = append(puts, clientv3.OpPut(keyOf(p), string(podValue(t, p)))); len(puts) == operations || i == n-1 {
			answer, err := client.Txn(t.Context()).Then(puts...).Commit()
			require.NoError(t, err)
			revision, puts = answer.Header.Revision, nil
		}
	}
	return revision
}

// TestListIsOneRevision: a list in many parts shows one revision, whoever writes meanwhile, by
// RangeStream and in pages.
func TestListIsOneRevision(t *testing.T) {
	server := start(t)
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old=%t", old), func(t *testing.T) {
			tap := &tap{noRangeStream: old}
			client := connect(t, tap.config(), server)
			_, err := client.Delete(t.Context(), pods, clientv3.WithPrefix())
			require.NoError(t, err)
			fill(t, client, 3000)
			source := etcd.New[corev1.Pod](client, pods)
			list := source.List(t.Context(), metav1.ListOptions{})
			got, late := map[string]string{}, int64(0)
			for p, err := range list.Items {
				require.NoError(t, err)
				if got[p.Name] = p.ResourceVersion; len(got) == 1 { // the others are still to come
					remove(t, client, pods+"ns/pod-02999")
					late = put(t, client, pod("pod-99999"))
				}
			}
			revision := list.Meta().ResourceVersion
			want, err := strconv.ParseInt(revision, 10, 64)
			require.NoError(t, err)
			require.Less(t, want, late)
			truth, err := client.Get(t.Context(), pods, clientv3.WithPrefix(), clientv3.WithRev(want), clientv3.WithKeysOnly())
			require.NoError(t, err)
			require.Len(t, truth.Kvs, 3000)
			for _, kv := range truth.Kvs {
				require.Equal(t, at(kv.ModRevision), got[string(kv.Key[len(pods+"ns/"):])])
			}
			require.Equal(t, old, tap.refusedStreams.Load() > 0)
		})
	}
}

// TestLongListsCostInProportion: an etcd before 3.7 counts the keys behind each page. A list of any
// length has so few pages that each key is counted some times.
func TestLongListsCostInProportion(t *testing.T) {
	const n = 6000 // with 60 MB
	tap := &tap{noRangeStream: true}
	client := connect(t, tap.config(), start(t))
	fillWith(t, client, n, 10<<10)
	got, _ := read(t, etcd.New[corev1.Pod](client, pods).List(t.Context(), metav1.ListOptions{}))
	require.Len(t, got, n)
	require.Less(t, tap.counted.Load(), int64(10*n))
}

// TestPagesWithSelectors: pages are filled with what is selected, and follow each other without a
// gap.
func TestPagesWithSelectors(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	for i := range 100 {
		put(t, client, pod(fmt.Sprintf("pod-%02d", i), labelled("tenth", fmt.Sprint(i%10))))
	}
	source := etcd.New[corev1.Pod](client, pods)
	options := metav1.ListOptions{Limit: 3, LabelSelector: "tenth=7"}
	var all []string
	for {
		page, meta := read(t, source.List(t.Context(), options))
		require.LessOrEqual(t, len(page), 3)
		all = append(all, names(page)...)
		if options.Continue = meta.Continue; options.Continue == "" {
			break
		}
	}
	require.Equal(t, []string{
		"pod-07", "pod-17", "pod-27", "pod-37", "pod-47", "pod-57", "pod-67", "pod-77", "pod-87", "pod-97",
	}, all)
}

// TestTokensAreKubernetes: the token of a page is the one that kube-apiserver writes, and one that
// leads out of the prefix is refused.
func TestTokensAreKubernetes(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	put(t, client, pod("a"))
	revision := put(t, client, pod("b"))
	source := etcd.New[corev1.Pod](client, pods)
	_, meta := read(t, source.List(t.Context(), metav1.ListOptions{Limit: 1}))
	token, err := base64.RawURLEncoding.DecodeString(meta.Continue)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%d,"start":"/ns/a\u0000"}`, revision), string(token))

	for _, start := range []string{"../secrets/ns/a", "/../secrets", "//secrets", "ns/../../secrets", "", "/"} {
		token := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":%q}`, revision, start))
		_, _, err := tryRead(source.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: token}))
		require.True(t, apierrors.IsBadRequest(err), "%q: %v", start, err)
	}
}

// TestAPrefixIsAFolder: the keys of another resource, or namespace, that begins alike are not read.
func TestAPrefixIsAFolder(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	put(t, client, pod("a"))
	put(t, client, pod("b", func(p *corev1.Pod) { p.Namespace = "ns-2" }))
	putValue(t, client, "/registry/pods-of-others/ns/c", []byte("{}"))
	all, _ := read(t, etcd.New[corev1.Pod](client, "/registry/pods").List(t.Context(), metav1.ListOptions{}))
	require.ElementsMatch(t, []string{"a", "b"}, names(all))
	one, _ := read(t, etcd.New[corev1.Pod](client, pods, etcd.InNamespace("ns")).List(t.Context(), metav1.ListOptions{}))
	require.Equal(t, []string{"a"}, names(one))
}

// TestListsShareEqualParts: what is equal in etcd is decoded once, but for secrets and on request.
func TestListsShareEqualParts(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	for i := range 20 {
		put(t, client, pod(fmt.Sprint("pod-", i), func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a-long-key-of-a-taint", Operator: corev1.TolerationOpExists}}
		}))
		secret, err := inProtobuf("v1", "Secret", &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s-", i), Labels: map[string]string{"app": "a-long-value-of-a-label"}},
		})
		require.NoError(t, err)
		putValue(t, client, fmt.Sprint("/registry/secrets/ns/s-", i), secret)
	}
	shares := func(options ...etcd.Option) bool {
		list, _ := read(t, etcd.New[corev1.Pod](client, pods, options...).List(t.Context(), metav1.ListOptions{}))
		require.Len(t, list, 20)
		return &list[18].Spec.Tolerations[0] == &list[19].Spec.Tolerations[0]
	}
	require.True(t, shares())
	require.False(t, shares(etcd.WithoutSharing()))

	secrets, _ := read(t, etcd.New[corev1.Secret](client, "/registry/secrets/").List(t.Context(), metav1.ListOptions{}))
	secrets[18].Labels["app"] = "written"
	require.Equal(t, "a-long-value-of-a-label", secrets[19].Labels["app"])
	metadata, _ := read(t, etcd.New[metav1.PartialObjectMetadata](client, "/registry/secrets/").List(t.Context(), metav1.ListOptions{}))
	metadata[18].Labels["app"] = "written"
	require.Equal(t, "a-long-value-of-a-label", metadata[19].Labels["app"])
	require.Equal(t, "Secret", metadata[0].Kind)
}

// TestListsInManyParts: objects are decoded where their bytes were received, in buffers that later
// answers are received in. What was decoded stays as it was written, in each form of values.
func TestListsInManyParts(t *testing.T) {
	const n = 4000
	client := connect(t, clientv3.Config{}, start(t))
	fill(t, client, n)
	for _, options := range [][]etcd.Option{nil, {etcd.WithoutSharing()}} {
		list, _ := read(t, etcd.New[corev1.Pod](client, pods, options...).List(t.Context(), metav1.ListOptions{}))
		require.Len(t, list, n)
		for i, p := range list {
			want := pod(fmt.Sprintf("pod-%05d", i), labelled("number", fmt.Sprint(i)))
			want.Annotations = map[string]string{"note": fmt.Sprintf("%04000d", i)}
			want.ResourceVersion = p.ResourceVersion
			require.Equal(t, want, p)
		}
	}

	documents := func(i int) *unstructured.Unstructured {
		u := widget(fmt.Sprintf("widget-%05d", i))
		u.Object["note"] = fmt.Sprintf("%04000d", i)
		return u
	}
	var puts []clientv3.Op
	for i := range n {
		text, err := documents(i).MarshalJSON()
		require.NoError(t, err)
		if puts = append(puts, clientv3.OpPut(fmt.Sprintf("%sns/widget-%05d", widgets, i), string(text))); len(puts) == 100 {
			_, err := client.Txn(t.Context()).Then(puts...).Commit()
			require.NoError(t, err)
			puts = nil
		}
	}
	for _, options := range [][]etcd.Option{nil, {etcd.WithoutSharing()}} {
		list, _ := read(t, etcd.New[unstructured.Unstructured](client, widgets, options...).List(t.Context(), metav1.ListOptions{}))
		require.Len(t, list, n)
		for i, u := range list {
			want := documents(i)
			want.SetResourceVersion(u.GetResourceVersion())
			require.Equal(t, want, u)
		}
	}
}

// TestLargeValues: an etcd that takes larger requests than gRPC does by itself is read, listed and
// watched.
func TestLargeValues(t *testing.T) {
	const size = 6 << 20
	client := connect(t, clientv3.Config{MaxCallSendMsgSize: 2 * size}, start(t, func(c *embed.Config) { c.MaxRequestBytes = 2 * size }))
	large := pod("large", func(p *corev1.Pod) { p.Annotations = map[string]string{"note": strings.Repeat("x", size)} })
	revision := put(t, client, large)
	source := etcd.New[corev1.Pod](client, pods)
	list, _ := read(t, source.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, list, 1)
	require.Len(t, list[0].Annotations["note"], size)
	put(t, client, large)
	event := watchFrom(t, source, metav1.ListOptions{ResourceVersion: at(revision)}).next()
	require.Len(t, event.Object.Annotations["note"], size)
}
