package etcd_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestForgottenVersions: exact versions and pages that the cache has forgotten are read from etcd,
// with the selectors of the cache, until etcd has forgotten them too.
func TestForgottenVersions(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	var revision int64
	for i := range 30 {
		revision = put(t, client, pod(fmt.Sprintf("pod-%02d", i), labelled("third", fmt.Sprint(i%3)), func(p *corev1.Pod) {
			p.Namespace = []string{"a", "a-b", "b"}[i%3] // the keys of a-b come before those of a
			p.Spec.NodeName = fmt.Sprint("node-", i%2)
		}))
	}
	source := etcd.New[corev1.Pod](client, pods)
	c, err := origin.New(source, builtin.Pods().Kind, builtin.Pods().Rules, watchcache.WithWindow(4))
	require.NoError(t, err)
	serveCollection(t, c)
	truth, _ := read(t, source.List(t.Context(), metav1.ListOptions{}))
	churn := func() {
		for i := range 10 {
			remove(t, client, keyOf(truth[3*i]))
		}
		for i := range 10 {
			put(t, client, truth[3*i])
		}
		require.NoError(t, c.WaitFresh(t.Context()))
	}

	exact := func(limit int64) (r watchcache.Request) {
		r.ResourceVersion, r.ResourceVersionMatch, r.Limit = at(revision), metav1.ResourceVersionMatchExact, limit
		return r
	}
	page, err := c.Cache().Page(t.Context(), exact(7)) // of the cache
	require.NoError(t, err)
	all, next := page.Objects, page.Meta.Continue
	churn()
	for next != "" { // of etcd
		r := watchcache.Request{}
		r.Continue, r.Limit = next, 7
		page, err := c.Cache().Page(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, at(revision), page.Meta.ResourceVersion)
		all, next = append(all, page.Objects...), page.Meta.Continue
	}
	require.Equal(t, truth, all)

	for name, of := range map[string]struct {
		namespace, field string
		label            string
	}{
		"everything": {}, "namespace": {namespace: "a"}, "its neighbour": {namespace: "a-b"}, "label": {label: "third=1"},
		"field": {field: "spec.nodeName=node-1"}, "all of them": {namespace: "b", field: "spec.nodeName=node-1", label: "third=2"},
	} {
		for _, limit := range []int64{0, 2} {
			r := exact(limit)
			r.Namespace = of.namespace
			r.LabelSelector, err = labels.Parse(of.label)
			require.NoError(t, err)
			r.FieldSelector, err = fields.ParseSelector(of.field)
			require.NoError(t, err)
			var want, got []*corev1.Pod
			for _, p := range truth {
				if (of.namespace == "" || p.Namespace == of.namespace) && r.LabelSelector.Matches(labels.Set(p.Labels)) &&
					r.FieldSelector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName}) {
					want = append(want, p)
				}
			}
			for {
				page, err := c.Cache().Page(t.Context(), r)
				require.NoError(t, err, name)
				got = append(got, page.Objects...)
				if page.Meta.Continue == "" {
					break
				}
				r.ResourceVersion, r.ResourceVersionMatch, r.Continue = "", "", page.Meta.Continue
			}
			require.Equal(t, want, got, "%s, limit %d", name, limit)
		}
	}

	page, err = c.Cache().Page(t.Context(), exact(7))
	require.NoError(t, err)
	newest, err := strconv.ParseInt(c.Cache().ResourceVersion(), 10, 64)
	require.NoError(t, err)
	compact(t, client, newest)
	_, err = c.Cache().Page(t.Context(), exact(7))
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	r := watchcache.Request{}
	r.Continue, r.Limit = page.Meta.Continue, 7
	_, err = c.Cache().Page(t.Context(), r)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	r.Continue = err.(apierrors.APIStatus).Status().Continue
	_, err = c.Cache().Page(t.Context(), r)
	require.NoError(t, err, "the token in the error goes on in today's state")
}
