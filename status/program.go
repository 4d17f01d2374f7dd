package status

import (
	"cmp"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// started is when the program began, but for the moment that its packages take.
var started = time.Now().UTC()

// programVersion is the version of the main module, as the build has noted it.
var programVersion = sync.OnceValue(func() string {
	const unknown = "(devel)"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return cmp.Or(info.Main.Version, unknown)
})

// heap is the size of the live objects.
func heap() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}
