package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tributary-go/tributary/sources/lookup"
)

// processes prints the pod of each process, by its cgroup.
func processes(who *lookup.Lookup, proc string, pids []string, out io.Writer) error {
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join(proc, pid, "cgroup"))
		if err != nil {
			return err
		}
		found := "is of no pod"
		for line := range strings.Lines(string(text)) { // 0::/kubepods.slice/…, or one of cgroup v1
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if pod := who.ByCgroup(parts[len(parts)-1]); pod != nil {
				found = pod.Pod.Namespace + "/" + pod.Pod.Name
			}
		}
		fmt.Fprintln(out, pid, found)
	}
	return nil
}
