package self

import (
	"os"
	"strconv"
	"strings"
)

// Memory is a figure of the kernel for this process, such as VmRSS or VmHWM, in bytes; zero outside
// Linux. Getrusage has the peak of the parent if that was larger.
func Memory(name string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
