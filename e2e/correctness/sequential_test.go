package correctness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage/testing/correctness"
)

// steps are the reads and watches of RunTestCorrectness, after its 42 writes and compactions.
const steps = 137

// known are the steps that do not go as the model wants, by their cause.
var known = []struct {
	cause     string
	resources []string
	steps     []string
}{
	// The model wants a 410, as etcd's storage has it at once. The server answers from its history
	// in memory with the list at that version, which is right.
	{"a list below the compaction", resources, []string{
		"List_pods_with_compacted_Exact_ResourceVersion=12_returns_ResourceExpired",
		"List_pods_with_compacted_Exact_ResourceVersion=15_returns_ResourceExpired",
		"List_pod_non-recursively_with_compacted_Exact_ResourceVersion=12_returns_ResourceExpired",
		"List_pods_with_Continue_at_compacted_ResourceVersion=15_returns_ResourceExpired_with_inconsistent_continue_token",
	}},
	// A pod's deletion is two writes. The adapter hides the first, so it cannot know which version
	// of the server a version that is yet to come will be, and these watches begin too early.
	{"the adapter's deletions of pods", []string{"pods"}, []string{
		"Watch_everything_with_ResourceVersion=8",
		"Watch_everything_with_ResourceVersion=8_and_AllowWatchBookmarks",
		"Watch_everything_with_ResourceVersion=8_and_Exact",
		"Watch_everything_with_ResourceVersion=8_and_NotOlderThan",
	}},
}

// What the test tells the process that runs the model: its steps are subtests, and fail the test
// that they are in.
const judgedURL, judgedEtcd, judgedResource = "CORRECTNESS_URL", "CORRECTNESS_ETCD", "CORRECTNESS_RESOURCE"

// TestSequential is Kubernetes' own run of the model: writes, then reads and watches of them all.
// The known violations are found, and no other.
func TestSequential(t *testing.T) {
	if url := os.Getenv(judgedURL); url != "" {
		runModel(t, server{url: url, etcd: os.Getenv(judgedEtcd)}, os.Getenv(judgedResource))
		return
	}
	for _, judged := range servers {
		for _, resource := range resources {
			t.Run(judged.name+"/"+resource, func(t *testing.T) {
				s := judged.start(t)
				command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSequential$", "-test.v", "-test.timeout=3m")
				command.Env = append(os.Environ(), judgedURL+"="+s.url, judgedEtcd+"="+s.etcd, judgedResource+"="+resource)
				out, _ := command.CombinedOutput() // its steps say it
				compare(t, resource, string(out))
			})
		}
	}
}

// compare looks for each step in what the run of a model has printed.
func compare(t *testing.T, resource, printed string) {
	t.Helper()
	var passed, failed, want []string
	for _, result := range regexp.MustCompile(`(?m)^    --- (PASS|FAIL): TestSequential/(\S+)`).FindAllStringSubmatch(printed, -1) {
		if result[1] == "PASS" {
			passed = append(passed, result[2])
		} else {
			failed = append(failed, result[2])
		}
	}
	var causes []string
	for _, k := range known {
		if slices.Contains(k.resources, resource) {
			want = append(want, k.steps...)
			causes = append(causes, fmt.Sprintf("%d of %s", len(k.steps), k.cause))
		}
	}
	slices.Sort(want)
	slices.Sort(failed)
	if !slices.Equal(want, failed) || len(passed)+len(failed) != steps {
		t.Log(printed)
	}
	require.Equal(t, want, failed, "the violations that are known, and those that were found")
	require.Len(t, passed, steps-len(want))
	t.Logf("%d of %d steps; known: %s", len(passed), steps, strings.Join(causes, ", "))
}

// runModel is the run itself.
func runModel(t *testing.T, s server, resource string) {
	store := &Store{client: connect(t, s, resource, false), resource: resource, uids: map[types.UID]types.UID{}}
	base, err := store.GetCurrentResourceVersion(t.Context())
	require.NoError(t, err)
	store.versions = NewVersions(base)
	forget := nothingForgotten(store)
	if s.etcd != "" {
		forget = etcdForgets(t, s.etcd)
	}
	compact := func(ctx context.Context, t *testing.T, version string) {
		number, err := strconv.ParseUint(version, 10, 64)
		require.NoError(t, err)
		written, key := forget(ctx, t, store.versions.Real(number))
		store.versions.Add(written, key)
		store.compacted = int64(number)
	}
	correctness.RunTestCorrectness(t.Context(), t, store, "", keyOf, compact)
}

// forgetting makes a server forget what was before a version. The model has it make a write.
type forgetting func(ctx context.Context, t *testing.T, version uint64) (written uint64, key string)

// etcdForgets compacts an etcd as API servers do, which tell each other by a key.
func etcdForgets(t *testing.T, url string) forgetting {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	const shared = "compact_rev_key"
	return func(ctx context.Context, t *testing.T, version uint64) (uint64, string) {
		put, err := etcd.Put(ctx, shared, strconv.FormatUint(version, 10))
		require.NoError(t, err)
		_, err = etcd.Compact(ctx, int64(version))
		require.NoError(t, err)
		return uint64(put.Header.Revision), shared
	}
}

// nothingForgotten is for a server without an etcd: it cannot be told to forget, and only makes the
// write.
func nothingForgotten(s *Store) forgetting {
	return func(ctx context.Context, t *testing.T, version uint64) (uint64, string) {
		var made corev1.Namespace
		err := s.client.Post().Resource("namespaces").
			Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "compaction-"}}).Do(ctx).Into(&made)
		require.NoError(t, err)
		t.Logf("not compacted at %d: the server keeps its objects in memory", version)
		written, err := strconv.ParseUint(made.ResourceVersion, 10, 64)
		require.NoError(t, err)
		return written, made.Name
	}
}

func keyOf(object runtime.Object) (string, error) {
	p, ok := object.(*example.Pod)
	if !ok {
		return "", fmt.Errorf("no pod: %T", object)
	}
	return "/pods/" + p.Namespace + "/" + p.Name, nil
}
