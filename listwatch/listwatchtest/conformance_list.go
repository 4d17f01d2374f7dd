package listwatchtest

import (
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

// The rows about lists.

func listLatest(p *probe) {
	pods, _ := p.listed(metav1.ListOptions{})
	require.Empty(p, pods)
	p.pod("b")
	a := p.pod("a")
	pods, meta := p.listed(metav1.ListOptions{})
	require.Equal(p, []string{"a", "b"}, names(pods))
	require.False(p, older(p, meta.ResourceVersion, a.ResourceVersion), "a list at the latest version holds every write")
	require.Equal(p, a.UID, pods[0].UID)
	require.Equal(p, a.ResourceVersion, pods[0].ResourceVersion)
	require.False(p, pods[0].CreationTimestamp.IsZero())
}

func listAny(p *probe) {
	a := p.pod("a")
	// After this, the server's cache has a.
	p.listed(metav1.ListOptions{ResourceVersion: a.ResourceVersion})
	pods, meta := p.listed(metav1.ListOptions{ResourceVersion: "0"})
	require.Equal(p, []string{"a"}, names(pods))
	require.False(p, older(p, meta.ResourceVersion, a.ResourceVersion))
}

func listNotOlderThan(p *probe) {
	p.pod("a")
	b := p.pod("b")
	for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchNotOlderThan} {
		pods, meta := p.listed(metav1.ListOptions{ResourceVersion: b.ResourceVersion, ResourceVersionMatch: match})
		require.Equal(p, []string{"a", "b"}, names(pods))
		require.False(p, older(p, meta.ResourceVersion, b.ResourceVersion))
	}
}

func listExact(p *probe) {
	a := p.pod("a")
	b := p.label(p.pod("b"), "k", "v")
	p.delete("a")
	p.label(b, "k", "w")
	exactly := func(version string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	}
	pods, meta := p.listed(exactly(a.ResourceVersion))
	require.Equal(p, []string{"a"}, names(pods))
	require.Equal(p, a.ResourceVersion, meta.ResourceVersion)
	pods, meta = p.listed(exactly(b.ResourceVersion))
	require.Equal(p, []string{"a", "b"}, names(pods))
	require.Equal(p, b.ResourceVersion, meta.ResourceVersion)
	require.Equal(p, "v", pods[1].Labels["k"], "objects are as they were")
}

func listPages(p *probe) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		p.pod(name)
	}
	options := metav1.ListOptions{Limit: 2}
	pods, first := p.listed(options)
	require.Equal(p, []string{"a", "b"}, names(pods))
	require.NotEmpty(p, first.Continue)
	require.NotNil(p, first.RemainingItemCount)
	require.EqualValues(p, 3, *first.RemainingItemCount)

	p.delete("d")
	p.pod("f")
	options.Continue = first.Continue
	pods, meta := p.listed(options)
	require.Equal(p, []string{"c", "d"}, names(pods), "later pages show the state of the first")
	require.Equal(p, first.ResourceVersion, meta.ResourceVersion)
	options.Continue = meta.Continue
	pods, meta = p.listed(options)
	require.Equal(p, []string{"e"}, names(pods))
	require.Empty(p, meta.Continue)
	require.Equal(p, first.ResourceVersion, meta.ResourceVersion)
}

func listSelectors(p *probe) {
	p.pod("a", "app", "web", "tier", "front")
	p.pod("b", "app", "web")
	p.pod("c", "app", "db")
	for _, c := range []struct {
		options metav1.ListOptions
		want    []string
	}{
		{metav1.ListOptions{LabelSelector: "app=web"}, []string{"a", "b"}},
		{metav1.ListOptions{LabelSelector: "app in (web,db),!tier"}, []string{"b", "c"}},
		{metav1.ListOptions{FieldSelector: "metadata.name=b"}, []string{"b"}},
		{metav1.ListOptions{FieldSelector: "metadata.name!=b,status.phase=Pending", LabelSelector: "app=web"}, []string{"a"}},
		{metav1.ListOptions{FieldSelector: "spec.nodeName=nobody"}, []string{}},
	} {
		if c.options.FieldSelector == "metadata.name!=b,status.phase=Pending" {
			p.pending("a", "b", "c")
		}
		pods, _ := p.listed(c.options)
		require.Equal(p, c.want, names(pods), "labels %q, fields %q", c.options.LabelSelector, c.options.FieldSelector)
	}
	pods, meta := p.listed(metav1.ListOptions{LabelSelector: "app", Limit: 2})
	require.Equal(p, []string{"a", "b"}, names(pods))
	require.Nil(p, meta.RemainingItemCount, "what a selector leaves is not counted")
}

func listMalformed(p *probe) {
	for _, c := range []struct {
		options metav1.ListOptions
		is      func(error) bool
	}{
		{metav1.ListOptions{ResourceVersion: "yesterday"}, apierrors.IsBadRequest},
		{metav1.ListOptions{FieldSelector: "spec.colour=red"}, apierrors.IsBadRequest},
		{metav1.ListOptions{LabelSelector: "a=b=c"}, apierrors.IsBadRequest},
		{metav1.ListOptions{Continue: "nonsense", Limit: 1}, apierrors.IsBadRequest},
		{metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact}, apierrors.IsInvalid},
		{metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, apierrors.IsInvalid},
	} {
		_, _, err := p.list(c.options)
		require.True(p, c.is(err), "%v: %v", c.options, err)
	}
}

func listTooLarge(p *probe) {
	a := p.pod("a")
	_, _, err := p.list(metav1.ListOptions{
		ResourceVersion: a.ResourceVersion + "000000", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.True(p, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	require.True(p, apierrors.IsTimeout(err), "%v", err)
}

func expiredExact(p *probe) {
	a := p.pod("a")
	p.pod("b")
	p.expire()
	_, _, err := p.list(metav1.ListOptions{
		ResourceVersion: a.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	require.True(p, apierrors.IsResourceExpired(err), "%v", err)
}

func expiredPages(p *probe) {
	for _, name := range []string{"a", "b", "c"} {
		p.pod(name)
	}
	options := metav1.ListOptions{Limit: 1}
	_, meta := p.listed(options)
	p.delete("b")
	p.expire()
	options.Continue = meta.Continue
	_, _, err := p.list(options)
	require.True(p, apierrors.IsResourceExpired(err), "%v", err)

	var status apierrors.APIStatus
	require.ErrorAs(p, err, &status)
	options.Continue = status.Status().ListMeta.Continue
	require.NotEmpty(p, options.Continue, "there is a token for who can do with an inconsistent list")
	pods, _ := p.listed(options)
	require.Equal(p, []string{"c"}, names(pods))
}

// pending gives pods the phase that the API server's defaulting would have set.
func (p *probe) pending(names ...string) {
	p.Helper()
	for _, name := range names {
		pods, _ := p.listed(metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.Len(p, pods, 1)
		pod := pods[0].DeepCopy()
		pod.Status.Phase = "Pending"
		p.written(p.UpdateStatus(p.Context(), pod))
	}
}

func older(p *probe, a, b string) bool {
	p.Helper()
	order, comparable := store.Version(a).Compare(store.Version(b))
	require.True(p, comparable, "%q and %q", a, b)
	return order < 0
}
