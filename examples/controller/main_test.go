package main

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStory runs the program without flags: it prints what the nodes come to, and ends without an
// error.
func TestStory(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	o.beat = 300 * time.Millisecond
	stdout, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- execute(ctx, o, out, io.Discard)
		_ = out.Close()
	}()
	missing := map[string]bool{"node-1 pods=2": true, "node-2 pods=0": true, "node-1 pods=1": true, "node-2 pods=1": true}
	lines := bufio.NewScanner(stdout)
	for len(missing) > 0 && lines.Scan() {
		delete(missing, lines.Text())
	}
	require.Empty(t, missing)
	cancel()
	_, err = io.Copy(io.Discard, stdout)
	require.NoError(t, err)
	require.NoError(t, <-ended)
}

func TestBadFlags(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"an argument":     {[]string{"now"}, `unexpected argument "now"`},
		"no such flag":    {[]string{"--nodes", "x"}, "-nodes"},
		"a duration":      {[]string{"--lease-duration", "soon"}, "-lease-duration"},
		"a short lease":   {[]string{"--lease-duration", "5s"}, "--lease-duration must be longer"},
		"half a second":   {[]string{"--lease-duration", "15500ms"}, "whole seconds"},
		"never retried":   {[]string{"--retry-period", "0s"}, "--retry-period"},
		"a namespace":     {[]string{"--namespace", "A b"}, "--namespace"},
		"a lease":         {[]string{"--lease", "A/b"}, "--lease"},
		"negative":        {[]string{"--for", "-1s"}, "--for"},
		"no such cluster": {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "--kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr strings.Builder
			require.Equal(t, exitUsage, run(t.Context(), row.args, io.Discard, &stderr))
			require.Contains(t, stderr.String(), row.want)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		})
	}
	var stderr strings.Builder
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "-lease-duration")
	stderr.Reset()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--listen", "nowhere:at:all"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "--listen nowhere:at:all")
}
