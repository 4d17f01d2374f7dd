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
	w := newWorkspace(t, pin{module: sampleController})
	const tests = "controller_test.go"
	w.replace(tests, `"k8s.io/client-go/informers"`, `"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/informer/clientgo"`)
	w.replace(tests, "informers.NewSharedInformerFactory(f.client, noResyncPeriodFunc())",
		"clientgo.Factory(informers.NewSharedInformerFactory(f.client, noResyncPeriodFunc()), []runtime.Object{&samplecontroller.Foo{}})")
	w.replace(tests, "\tc := NewController(", `
	fmt.Printf("%T, %T\n", k8sI, i.Samplecontroller().V1alpha1().Foos().Informer())
	c := NewController(`)
	judgeSampleController(t, w, w.build("."), func(o outcome) bool {
		return strings.Contains(o.output, "*informers.complete[") && strings.Contains(o.output, ", *clientgo.complete[")
	})
}

// TestSampleControllerUnedited runs the same tests from the module cache, where nobody can edit
// them. client-go is a copy whose constructor of shared informers is ours: go.mod replaces it.
func TestSampleControllerUnedited(t *testing.T) {
	w := newWorkspace(t, pin{module: "k8s.io/client-go"})
	w.add("testdata/unedited/cache", toolsCache)
	// Its controller imports this package, and ours does not.
	w.add("testdata/unedited/record", "tools/record")
	w.rename(toolsCache+"/shared_informer.go", "NewSharedIndexInformerWithOptions")
	judgeSampleController(t, w, w.buildOf(sampleController), func(o outcome) bool {
		return strings.Count(o.output, made+"informer") == 2 // of Foos and of Deployments
	})
}

// judgeSampleController runs each test; isOurs tells from its output whether it met ours alone.
func judgeSampleController(t *testing.T, w *workspace, binary string, isOurs func(outcome) bool) {
	var outcomes []outcome
	for _, test := range strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^Test")))) {
		o := runOne(t.Context(), binary, test)
		o.made = ""
		if isOurs(o) {
			o.made = "informer"
		}
		outcomes = append(outcomes, o)
	}
	t.Logf("%s %s: %d tests of %s on ours", w.pin.module, w.pin.version, len(outcomes), sampleController)
	wrong := sampleControllerTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}
