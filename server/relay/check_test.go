package relay_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/relay"
)

// TestCheckSaysWhatToWrite in place of a resource that the upstream does not serve so.
func TestCheckSaysWhatToWrite(t *testing.T) {
	u := newUpstream(t)
	u.setAPIService(t, false)
	check := func(options ...relay.Option) error { return newRigBefore(t, u, options...).Check(t.Context()) }
	of := func(name string) relay.Scope { return relay.Scope{Resource: schema.ParseGroupResource(name)} }
	for name, want := range map[string]string{
		"pod": "write pods", "po": "write pods", "deployments": "write deployments.apps", "Deployment.apps": "write deployments.apps",
		"none.example.com": "name the plural and the group", "bindings": "serves no resource", "widgets.example.com": "name it by --aggregated",
	} {
		require.ErrorContains(t, check(relay.Only(of(name))), want, name)
	}
	require.NoError(t, check(relay.Only(of("pods"), of("deployments.apps"))))
	require.NoError(t, check(relay.Only(of("widgets.example.com")), relay.Aggregated(widgetResource.GroupResource())))
	require.ErrorContains(t, check(relay.Aggregated(schema.GroupResource{Resource: "widgets"})), "write widgets.example.com")
	mistyped := of("pods")
	mistyped.Fields = fields.ParseSelectorOrDie("spec.nodename=a")
	require.ErrorContains(t, check(relay.Only(mistyped)), "does not accept the selectors")
	mistyped.Fields = fields.ParseSelectorOrDie("spec.nodeName=a")
	require.NoError(t, check(relay.Only(mistyped)))
	g := newRigBefore(t, u, relay.Only(of("pods")))
	u.down()
	require.NoError(t, g.Check(t.Context()), "a relay starts without its upstream")
}

// TestSelectorsAreComparedByMeaning: "k==v", "k=v" and "k in (v)" select the same.
func TestSelectorsAreComparedByMeaning(t *testing.T) {
	selector, err := labels.Parse("app==app-1,tier!=web")
	require.NoError(t, err)
	g := newRig(t, relay.Only(relay.Scope{Resource: schema.GroupResource{Resource: "configmaps"}, Labels: selector}))
	for _, query := range []string{"app%3Dapp-1,tier%21%3Dweb", "app%3D%3Dapp-1,tier+notin+(web)", "tier%21%3Dweb,app+in+(app-1),a%3Db"} {
		require.Equal(t, http.StatusOK, get(t, g.url+"/api/v1/configmaps?labelSelector="+query).code)
	}
	require.Empty(t, g.upstream.asked(func(r request) bool { return r.token == clientToken }))
	require.Equal(t, http.StatusOK, get(t, g.url+"/api/v1/configmaps?labelSelector=app%3Dapp-1").code)
	require.Len(t, g.upstream.asked(func(r request) bool { return r.token == clientToken }), 1)
}

// TestAServerWithoutWatchLists: the reflector lists there, and the copy is filled by that.
func TestAServerWithoutWatchLists(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	u.answers(refusesWatchLists)
	g := newRigBefore(t, u)
	for range 2 {
		require.Len(t, names(t, get(t, g.url+"/api/v1/pods").body), 12)
	}
	require.Equal(t, []string{"pods"}, g.copies())
	require.Empty(t, u.asked(func(r request) bool { return r.token == clientToken }))
	require.NotContains(t, get(t, g.url+"/readyz?verbose").body, "not copied")
}

// refusesWatchLists answers as an API server whose gate WatchList is off.
func refusesWatchLists(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Get("sendInitialEvents") == "" {
		return false
	}
	writeStatus(w, http.StatusUnprocessableEntity, "Invalid")
	return true
}
