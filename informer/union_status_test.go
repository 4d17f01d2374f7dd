package informer_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestUnionStatusSumsUpEveryField: no field of the members' statuses is lost in the union's.
func TestUnionStatusSumsUpEveryField(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	u := informer.NewUnion[*corev1.Pod]()
	_, err := u.Add("all", pods.ListerWatcher())
	require.NoError(t, err)
	go u.Run(t.Context())
	require.NoError(t, u.WaitSynced(t.Context()))
	require.False(t, u.Members()[0].LastProgress.IsZero())
	require.False(t, u.Status().LastContact.IsZero())
	require.False(t, u.Status().LastProgress.IsZero(), "LastProgress of the union")
}
