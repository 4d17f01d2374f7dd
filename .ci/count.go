// Command count reads what `go test -json` prints, and shows what a person needs of it: the output
// of tests that failed, and a line for each package. It appends a line for each test to a file.
//
//	go test -json ./... | go run .ci/count.go tally
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
}

func main() {
	log.SetFlags(0)
	tally, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	words := map[string]string{"pass": "passed", "fail": "failed", "skip": "skipped"}
	output := map[string]*strings.Builder{} // of the tests and packages that have not ended
	failed := false
	failures := map[string]int{} // tests that failed, by package
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // not of a test
			continue
		}
		key := e.Package + " " + e.Test
		switch word, ended := words[e.Action]; {
		case e.Action == "build-output":
			fmt.Print(e.Output)
		case e.Action == "output" && e.Test == "" && isResult(e.Output):
			fmt.Print(e.Output)
		case e.Action == "output":
			if output[key] == nil {
				output[key] = &strings.Builder{}
			}
			output[key].WriteString(e.Output)
		case ended:
			if e.Action == "fail" {
				failed = true
				if out := output[key]; out != nil {
					fmt.Print(out)
				}
				failures[e.Package]++
			}
			delete(output, key)
			// A package fails by its tests; without a failed test, it did not build or has crashed.
			if e.Test != "" || e.Action == "fail" && failures[e.Package] == 1 {
				fmt.Fprintln(tally, word)
			}
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
	if err := tally.Close(); err != nil {
		log.Fatal(err)
	}
	if failed {
		os.Exit(1)
	}
}

// isResult reports whether a package's output is the line that go test ends with.
func isResult(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}
