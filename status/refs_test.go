package status_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/status"
)

// TestReferencesOnThePage: the page has one row for all names, in the state of their verdict.
func TestReferencesOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
		client, err := listwatch.NewRESTClient(server.Server().Config(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets"))
		page := new(status.Handler)
		defer page.Track("secrets", secrets)()
		row := func() status.Copy {
			time.Sleep(2 * time.Second) // a look is shared for a second
			synctest.Wait()
			all := page.Document().Copies
			require.Len(t, all, 1)
			require.Equal(t, "references", all[0].Kind)
			return all[0]
		}
		written := server.Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}, Data: map[string][]byte{"value": []byte("planted")},
		})
		secrets.SetOwner("pod", refs.In("shop", "tls", "db"))
		require.Equal(t, status.Stopped, row().State)
		require.Equal(t, []string{"not_run"}, row().Classes)

		server.Delay(5*time.Second, listwatchtest.Times(2))
		ended := make(chan error, 1)
		go func() { ended <- secrets.Run(t.Context()) }()
		require.Equal(t, status.Syncing, row().State)
		time.Sleep(5 * time.Second)
		shown := row()
		require.Equal(t, status.Synced, shown.State, "%v", shown)
		require.Equal(t, []int{2, 2, 1, 1}, []int{shown.Names, shown.Watches, shown.Objects, shown.Events})
		require.Equal(t, uint64(written.Size()), shown.ReceivedBytes)
		answer := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?copy=secrets", nil)
		request.Header.Set("Accept", "text/html")
		page.ServeHTTP(answer, request)
		require.Contains(t, answer.Body.String(), "of 2 names, 2 watched")
		require.NotContains(t, answer.Body.String(), "planted")

		refused := server.Fail(listwatchtest.Watch, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil), listwatchtest.UntilLifted())
		secrets.SetOwner("other", refs.In("shop", "new"))
		shown = row()
		require.Equal(t, status.Failing, shown.State)
		require.Equal(t, []string{"forbidden"}, shown.Classes)
		require.Len(t, shown.Causes, 1)
		require.True(t, strings.HasPrefix(shown.Causes[0], "refs: shop/new: not read yet: forbidden: "), shown.Causes[0])
		refused.Lift()
		secrets.SetOwner("other", nil)
		require.Equal(t, status.Synced, row().State)

		server.Mute()
		time.Sleep(time.Minute)
		require.Equal(t, status.Synced, row().State)
		page.StaleAfter = 30 * time.Second
		require.Equal(t, status.Stale, row().State)
	})
}
