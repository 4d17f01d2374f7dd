package listwatchtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func BenchmarkListThroughMemory(b *testing.B) {
	const many = 1000
	pods := listwatchtest.New(b, listwatchtest.Pods())
	for i := range many {
		pods.Create(pod(fmt.Sprint("p", i)))
	}
	source := pods.ListerWatcher()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range source.List(b.Context(), latest).Items {
			require.NoError(b, err)
			n++
		}
		require.Equal(b, many, n)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*many), "µs/pod")
}
