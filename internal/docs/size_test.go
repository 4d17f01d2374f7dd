package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnotherKindIsSmall builds programs with informers of one kind and of five. The kinds share
// the generic code, so that another kind adds its types and tables (0.2 MB) and no copy (0.7 MB).
func TestAnotherKindIsSmall(t *testing.T) {
	atRoot(t)
	one, five := programSize(t, "Pod"), programSize(t, "Pod", "Node", "Service", "Secret", "ConfigMap")
	t.Logf("%d bytes with one kind, %d with five", one, five)
	require.Less(t, (five-one)/4, int64(300_000), "bytes for another kind")
}

// programSize is the size of a program that has an informer of each kind, in bytes.
func programSize(t *testing.T, kinds ...string) int64 {
	var body strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&body, "\tinformer.New(listwatch.FromClient[corev1.%s](client, \"all\")).Run(ctx)\n", kind)
	}
	source, program := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(source, fmt.Appendf(nil, `package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

func main() {
	ctx, client := context.Background(), new(rest.RESTClient)
%s}
`, body.String()), 0o600))
	out, err := exec.Command("go", "build", "-ldflags=-w", "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(program)
	require.NoError(t, err)
	return info.Size()
}
