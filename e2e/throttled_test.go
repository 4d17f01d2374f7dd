package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// A6: priority and fairness admits one request of the agents at a time and refuses the rest with
// 429. Each of 100 reflectors comes back no sooner than it was told, not together with the others,
// and all of them sync.
func TestThrottled(t *testing.T) {
	const agents, pods = 100, 2000
	// With so few requests in flight altogether, the smallest share is one.
	c := cluster.Start(t, "--max-requests-inflight=20", "--max-mutating-requests-inflight=20")
	w := newWorld(t, c)
	w.fill(pods)
	w.admitOneOfAgents()

	began := time.Now()
	followers := make([]follower, agents)
	for i := range followers {
		followers[i] = w.followPods(t, c.Server.Config(cluster.Agent), "", nil)
	}
	var synced []time.Duration
	for _, f := range followers {
		requireSynced(t, f, 5*time.Minute)
		synced = append(synced, f.account().replacedAt.Sub(began))
	}

	var first, again []time.Duration // when requests were sent
	refused, told := 0, map[time.Duration]int{}
	for _, f := range followers {
		log := f.sent().log()
		first = append(first, log[0].at.Sub(began))
		for i, r := range log {
			if i > 0 {
				again = append(again, r.at.Sub(began))
			}
			if r.code != 429 {
				continue
			}
			refused++
			told[r.retryAfter]++
			if i+1 < len(log) {
				waited := log[i+1].at.Sub(r.answered)
				require.GreaterOrEqual(t, waited, r.retryAfter, "came back after %s, told %s", waited, r.retryAfter)
			}
		}
	}
	t.Logf("A6: %d reflectors of %d pods, one request at a time: %d answers of 429, which said %v; synced after a median of %s, %s at most",
		agents, pods, refused, told, quantile(synced, 0.5), quantile(synced, 1))
	t.Logf("A6: first requests\n%s", histogram(first, 100*time.Millisecond))
	t.Logf("A6: later requests\n%s", histogram(again, 500*time.Millisecond))
	require.Greater(t, refused, agents/2, "the server did throttle")
	require.Less(t, busiest(again, 100*time.Millisecond), agents/3, "they come together")
	require.False(t, slices.ContainsFunc(followers, func(f follower) bool { return lists(f) != 1 }), "one list each")
	for _, f := range followers[:5] {
		requireWhole(t, f, 30*time.Second)
	}
}

// admitOneOfAgents has the server run one request of the agents at a time, and queue none.
func (w *world) admitOneOfAgents() {
	w.t.Helper()
	zero, none := int32(0), int32(0)
	level, err := w.client.FlowcontrolV1().PriorityLevelConfigurations().Create(w.t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "one-at-a-time"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &[]int32{1}[0], LendablePercent: &zero, BorrowingLimitPercent: &none,
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.client.FlowcontrolV1().FlowSchemas().Create(w.t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "agents"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level.Name},
			MatchingPrecedence:         2, // right after what is exempt
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: cluster.AgentUser}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	// It is in force once the server counts a request of the agents to it.
	metric := fmt.Sprintf("apiserver_flowcontrol_nominal_limit_seats{priority_level=%q} ", level.Name)
	require.Eventually(w.t, func() bool {
		text, err := w.client.RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
		return err == nil && slices.Contains(linesOf(text), metric+"1")
	}, 30*time.Second, 100*time.Millisecond)
}
