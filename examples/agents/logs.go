package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources/lookup"
)

// tail prints the lines of all logs with their pods, until ctx ends. A log waits until its pod is
// known. A rotation may lose lines: examples/node-agent follows it.
func tail(ctx context.Context, who *lookup.Lookup, root string, out io.Writer) error {
	for offsets := map[string]int64{}; ; {
		paths, _ := filepath.Glob(filepath.Join(root, "*_*_*", "*", "*.log"))
		for _, path := range paths { // <namespace>_<name>_<uid>/<container>/<restart>.log
			folder := filepath.Base(filepath.Dir(filepath.Dir(path)))
			pod := who.ByUID(types.UID(folder[strings.LastIndex(folder, "_")+1:]))
			data, err := readFrom(path, offsets[path])
			if pod == nil || err != nil {
				continue
			}
			data = data[:bytes.LastIndexByte(data, '\n')+1] // whole lines
			offsets[path] += int64(len(data))
			for line := range bytes.Lines(data) {
				fmt.Fprintf(out, "%s/%s %v: %s", pod.Pod.Namespace, pod.Pod.Name, pod.Pod.Labels, line)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, offset, math.MaxInt64-offset))
}
