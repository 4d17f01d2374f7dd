//go:build !race

package manifest_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxPeak is what a process that decodes one manifest may hold at most, itself included; MiB.
const maxPeak = 512

const growing = "TRIBUTARY_TEST_MANIFEST"

// TestWhatAManifestCosts decodes each of the greedy ones in a process of its own, and looks at its
// peak. The race detector has memory of its own, and would need minutes for a single goroutine.
func TestWhatAManifestCosts(t *testing.T) {
	if name := os.Getenv(growing); name != "" {
		requireRefused(t, name)
		// rusage would hold the peak of the parent as well
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		fmt.Println(regexp.MustCompile(`VmHWM:\s+\d+ kB`).FindString(string(status)))
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for name := range greedy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decode := exec.Command(self, "-test.run=^TestWhatAManifestCosts$")
			decode.Env = append(os.Environ(), growing+"="+name)
			output, err := decode.CombinedOutput()
			require.NoError(t, err, string(output))
			parts := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(output)
			require.NotNil(t, parts, string(output))
			peak, err := strconv.Atoi(string(parts[1]))
			require.NoError(t, err)
			peak >>= 10
			t.Log(peak, "MiB")
			require.Less(t, peak, maxPeak)
		})
	}
}
