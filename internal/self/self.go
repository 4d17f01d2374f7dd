// Package self starts further processes of the running program, so that a measurement has a heap
// and a scheduler of its own.
package self

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Command prepares a process of this program. It writes errors to ours, and is killed when ctx
// ends. No setting of the garbage collector or of client-go's features reaches it from the
// environment: they would favor one side of a comparison.
func Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "GOGC=") || strings.HasPrefix(e, "GOMEMLIMIT=") || strings.HasPrefix(e, "KUBE_FEATURE_")
	})
	return cmd, nil
}
