// Package side chooses, for one process, whose informers a program makes: TRIBUTARY_SIDE says it.
package side

import (
	"fmt"
	"os"
	"regexp"
	"runtime"

	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
)

// Ours is whether informers are Tributary's. Otherwise they are client-go's.
var Ours = os.Getenv("TRIBUTARY_SIDE") == "tributary"

// test is a test function among the names of a stack.
var test = regexp.MustCompile(`\.(Test\w+)`)

// MadeIfOurs is Made if the informer is Tributary's: some types have client-go's in our factories.
func MadeIfOurs(informer cache.SharedInformer) {
	if _, ours := clientgo.StatusOf(informer); ours {
		Made()
	}
}

// Made says that an informer of ours was made, and in which test if the stack has it. The line
// begins anew, since the program may be in the middle of one.
func Made() {
	callers := make([]uintptr, 200)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	name := ""
	for more := true; more && name == ""; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if found := test.FindStringSubmatch(frame.Function); found != nil {
			name = found[1]
		}
	}
	fmt.Printf("\ntributary made: informer %s\n", name)
}
