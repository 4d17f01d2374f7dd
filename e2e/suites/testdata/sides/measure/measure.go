// Package measure says what a program's informers hold.
package measure

import (
	"fmt"
	"runtime"
	"time"
)

// From returns a function that prints the live heap and the goroutines that came since, and how
// many objects the program reads.
func From() (until func(objects int)) {
	heap, goroutines := now()
	return func(objects int) {
		heapThen, goroutinesThen := settled()
		fmt.Printf("\nwild: %d bytes, %d goroutines, %d objects\n", heapThen-heap, goroutinesThen-goroutines, objects)
	}
}

// settled waits for handlers and queues to end their work: for four readings that are equal but for
// a percent.
func settled() (heap, goroutines int) {
	for equal := 0; equal < 4; {
		time.Sleep(time.Second)
		then, count := now()
		if equal++; count != goroutines || then < heap*99/100 || then > heap*101/100 {
			equal = 0
		}
		heap, goroutines = then, count
	}
	return heap, goroutines
}

func now() (heap, goroutines int) {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc), runtime.NumGoroutine()
}
