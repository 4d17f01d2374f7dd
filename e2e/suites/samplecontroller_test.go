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

// TestSampleController runs the tests of sample-controller on ours. They are as they were but for
// what an adopter changes: the import of the factory of built-in types, and the constructor of the
// generated one. One more line prints the factory's and the informer's types.
func TestSampleController(t *testing.T) {
	w := newWorkspace(t, sampleController)
	const tests = "controller_test.go"
	w.replace(tests, `"k8s.io/client-go/informers"`, `"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/informer/clientgo"`)
	w.replace(tests, "informers.NewSharedInformerFactory(f.client, noResyncPeriodFunc())",
		"clientgo.Factory(informers.NewSharedInformerFactory(f.client, noResyncPeriodFunc()), []runtime.Object{&samplecontroller.Foo{}})")
	w.replace(tests, "\tc := NewController(", `
	fmt.Printf("%T, %T\n", k8sI, i.Samplecontroller().V1alpha1().Foos().Informer())
	c := NewController(`)
	binary := w.build(".")
	var outcomes []outcome
	const ours = "*informers.factory, *clientgo.shared["
	for _, test := range strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^Test")))) {
		o := runOne(t.Context(), binary, test)
		if strings.Contains(o.output, ours) {
			o.made = "informer"
		}
		outcomes = append(outcomes, o)
	}
	t.Logf("%s: %d tests of %s on ours", w.version, len(outcomes), sampleController)
	wrong := sampleControllerTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}
