package suites

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sampleController is the module, whose tests are in the package at its root.
const sampleController = "k8s.io/sample-controller"

// sampleControllerTable is of sample-controller v0.36.1.
var sampleControllerTable = table{passing: map[string]int{"informer": 4}}

// TestSampleController runs the tests of sample-controller with our factory in the place of
// client-go's, and our informer in its generated factory. They put objects into the stores of
// informers, which ours refuse, and do not wait for a sync. Here they wait: their fake clientsets
// have the same objects.
func TestSampleController(t *testing.T) {
	w := newWorkspace(t, sampleController)
	const tests = "controller_test.go"
	w.replace(tests, `kubeinformers "k8s.io/client-go/informers"`, `kubeinformers "github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/informer/clientgo"
	"k8s.io/sample-controller/pkg/generated/clientset/versioned"`)
	w.replace(tests, "\tk8sI := ", `
	i.InformerFor(&samplecontroller.Foo{}, func(c versioned.Interface, resync time.Duration) cache.SharedIndexInformer {
		fmt.Println("`+made+`informer")
		return clientgo.FromClientset(c, &samplecontroller.Foo{}, resync)
	})
	k8sI := `)
	w.replace(tests, "\t\tk8sI.Start(ctx.Done())\n",
		"\t\tk8sI.Start(ctx.Done())\n\t\ti.WaitForCacheSync(ctx.Done())\n\t\tk8sI.WaitForCacheSync(ctx.Done())\n")
	binary := w.build(".")
	var outcomes []outcome
	for _, test := range strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^Test")))) {
		outcomes = append(outcomes, runOne(t.Context(), binary, test))
	}
	t.Logf("%s: %d tests of %s on ours", w.version, len(outcomes), sampleController)
	wrong := sampleControllerTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}
