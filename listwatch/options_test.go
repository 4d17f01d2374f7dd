package listwatch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// TestOptionsFitByType: an option that a constructor would have to refuse, or to ignore, does not
// compile.
func TestOptionsFitByType(t *testing.T) {
	for name, row := range map[string]struct {
		option                any
		client, funcs, reader bool
	}{
		"InNamespace":          {listwatch.InNamespace("shop"), true, false, false},
		"Fields":               {listwatch.Fields(fields.Everything()), true, true, false},
		"Labels":               {listwatch.Labels(labels.Everything()), true, true, false},
		"Tweak":                {listwatch.Tweak(nil), true, true, false},
		"WithNameless":         {listwatch.WithNameless(), true, true, false},
		"WithJSON":             {listwatch.WithJSON(), true, false, false},
		"WithoutSharing":       {listwatch.WithoutSharing(), true, false, false},
		"DropManagedFields":    {listwatch.DropManagedFields(), true, false, false},
		"WithMutationDetector": {listwatch.WithMutationDetector(nil), true, true, false},
		"WithoutWatchList":     {listwatch.WithoutWatchList(), true, true, false},
		"ReadOnly":             {listwatch.ReadOnly(), false, false, true},
	} {
		_, client := row.option.(listwatch.Option)
		_, funcs := row.option.(listwatch.FuncsOption)
		_, reader := row.option.(listwatch.ReaderOption)
		require.Equal(t, []bool{row.client, row.funcs, row.reader}, []bool{client, funcs, reader}, name)
	}
}

// TestTweak: a tweak narrows the options before it, and is called once.
func TestTweak(t *testing.T) {
	var asked []metav1.ListOptions
	ask := func(optionList ...listwatch.FuncsOption) metav1.ListOptions {
		lw := listwatch.FromFuncs[*corev1.Pod](func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
			asked = append(asked, o)
			return &corev1.PodList{}, nil
		}, func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errors.ErrUnsupported }, optionList...)
		for range 2 {
			_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
		}
		require.Equal(t, asked[len(asked)-2], asked[len(asked)-1])
		return asked[len(asked)-1]
	}
	calls := 0
	tweak := listwatch.Tweak(func(o *metav1.ListOptions) {
		calls++
		o.LabelSelector, o.FieldSelector, o.ResourceVersion = "app=a", "spec.nodeName=n", "0"
	})
	require.Equal(t, metav1.ListOptions{LabelSelector: "app=a", FieldSelector: "spec.nodeName=n"}, ask(tweak))
	b := listwatch.Labels(labels.SelectorFromSet(labels.Set{"tier": "b"}))
	require.Equal(t, metav1.ListOptions{LabelSelector: "tier=b,app=a", FieldSelector: "spec.nodeName=n"}, ask(b, tweak))
	require.Equal(t, metav1.ListOptions{LabelSelector: "tier=b"}, ask(b, listwatch.Tweak(nil)))
	require.Equal(t, metav1.ListOptions{LabelSelector: "app=a", FieldSelector: "spec.nodeName=n"}, ask(tweak, tweak))
	require.Equal(t, 1, calls)
	require.PanicsWithError(t, `listwatch: Tweak: label selector "a=b=c": found '=', expected: ',' or 'end of string'`, func() {
		listwatch.Tweak(func(o *metav1.ListOptions) { o.LabelSelector = "a=b=c" })
	})
}
