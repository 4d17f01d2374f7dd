package listwatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

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
