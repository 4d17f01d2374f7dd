package listwatch_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"

	"github.com/tributary-go/tributary/listwatch"
)

// TestAcceptOfCBOR: client-go's gates decide whether and where CBOR is in the Accept header.
func TestAcceptOfCBOR(t *testing.T) {
	const metaOf = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for name, row := range map[string]struct {
		allow, prefer                   bool
		typed, custom, metadata, asJSON string
	}{
		"closed": {false, true, protobufType + "," + jsonType, jsonType,
			protobufType + metaOf + "," + jsonType + metaOf + "," + jsonType, jsonType},
		"allowed": {true, false, protobufType + "," + cborType + "," + jsonType, cborType + "," + jsonType,
			protobufType + metaOf + "," + cborType + metaOf + "," + jsonType + metaOf + "," + jsonType, jsonType},
		"preferred": {true, true, cborType + "," + protobufType + "," + jsonType, cborType + "," + jsonType,
			cborType + metaOf + "," + protobufType + metaOf + "," + jsonType + metaOf + "," + jsonType, jsonType},
	} {
		t.Run(name, func(t *testing.T) {
			featuretesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, row.allow)
			featuretesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, row.prefer)
			var accepted []string
			client := restClient(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
				accepted = append(accepted, r.Header.Get("Accept"))
			}), v1Version)
			readWatch(listwatch.FromClient[corev1.Pod](client, "pods").Watch(t.Context(), metav1.ListOptions{}))
			readWatch(listwatch.FromClient[unstructured.Unstructured](client, "pods").Watch(t.Context(), metav1.ListOptions{}))
			readWatch(listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods").Watch(t.Context(), metav1.ListOptions{}))
			readWatch(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.WithJSON()).Watch(t.Context(), metav1.ListOptions{}))
			require.Equal(t, []string{row.typed, row.custom, row.metadata, row.asJSON}, accepted)
		})
	}
}

// TestUnreadableCBORCostsOneObject: values without a form in JSON, and fields of another type.
func TestUnreadableCBORCostsOneObject(t *testing.T) {
	const good = "\xa1\x48metadata\xa1\x44name\x41a"
	for name, bad := range map[string]string{
		"undefined":     "\xa2\x48metadata\xa1\x44name\x41b\x44spec\xf7",
		"another type":  "\xa2\x48metadata\xa1\x44name\x41b\x44spec\x07",
		"member twice":  "\xa3\x48metadata\xa1\x44name\x41b\x44spec\xa0\x64spec\xa0",
		"large integer": "\xa2\x48metadata\xa1\x44name\x41b\x44spec\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			// A break ends an array without a count. The kind comes last.
			list := "\xd9\xd9\xf7\xa2\x45items\x9f" + good + bad + good + "\xff\x44kind\x47PodList"
			event := func(object string) string {
				return "\xd9\xd9\xf7\xa2\x46object" + string([]byte{object[0] + 1}) + "\x44kind\x43Pod" + object[1:] + "\x44type\x45ADDED"
			}
			stream := event(good) + event(bad) + event(good)
			for _, d := range []struct {
				op  string
				all func(*listwatch.ListWatch[*corev1.Pod]) (int, []error)
			}{
				{op: "list: object b", all: func(lw *listwatch.ListWatch[*corev1.Pod]) (int, []error) {
					pods, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
					return len(pods), errs
				}},
				{op: "watch: ADDED event of object b", all: func(lw *listwatch.ListWatch[*corev1.Pod]) (int, []error) {
					events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
					return len(events), errs
				}},
			} {
				client := restClient(t, serve(t, answerBoth(cborType, []byte(list), []byte(stream))), v1Version)
				n, errs := d.all(listwatch.FromClient[corev1.Pod](client, "pods"))
				require.Equal(t, 2, n)
				require.Len(t, errs, 1)
				var unusable *listwatch.DecodeError
				require.ErrorAs(t, errs[0], &unusable)
				require.ErrorContains(t, errs[0], d.op+" cannot be used")
			}
		})
	}
}
