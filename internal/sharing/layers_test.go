package sharing_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/internal/sharing"
)

// inState is a pod in one of two states that follow each other.
func inState(i, state int) *corev1.Pod {
	pod := benchPod(i)
	pod.ResourceVersion = fmt.Sprint(1_000_000 + 2*i + state)
	pod.Status.ContainerStatuses[0].Ready = state == 0
	pod.Status.ContainerStatuses[1].RestartCount = int32(state)
	return pod
}

// BenchmarkLayers has a figure for each way to notice that a part is the same: it turns one after
// the other off. The lists are decoded by a new memo each time, with the garbage collector's CPU;
// the heap is that of the objects and the memo.
func BenchmarkLayers(b *testing.B) {
	var protobuf [2][][]byte
	var text, shuffled [][]byte
	for i := range benchPods {
		for state := range protobuf {
			data, err := inState(i, state).Marshal()
			require.NoError(b, err)
			protobuf[state] = append(protobuf[state], data)
		}
		data, err := json.Marshal(inState(i, 0))
		require.NoError(b, err)
		text = append(text, data)
	}
	shuffled = slices.Clone(protobuf[0])
	rand.New(rand.NewSource(1)).Shuffle(benchPods, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, without := range append([]string{"none"}, slices.Sorted(maps.Keys(sharing.Layers))...) {
		memo := func() *sharing.Memo {
			m, err := sharing.New()
			require.NoError(b, err)
			if off := sharing.Layers[without]; off != nil {
				off(m)
			}
			m.Listed(benchPods, benchPods*len(protobuf[0][0]))
			return m
		}
		list := func(all [][]byte, decode func(*sharing.Memo, []byte) (any, error)) func(b *testing.B) {
			return func(b *testing.B) {
				decoding(b, func(held []any) {
					m := memo()
					for i, data := range all {
						var err error
						if held[i], err = decode(m, data); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
		message := func(m *sharing.Memo, data []byte) (any, error) {
			pod := &corev1.Pod{}
			return pod, m.Unmarshal(data, pod)
		}
		b.Run(without+"/list", list(protobuf[0], message))
		b.Run(without+"/shuffled", list(shuffled, message))
		b.Run(without+"/json", list(text, func(m *sharing.Memo, data []byte) (any, error) {
			pod := &corev1.Pod{}
			return pod, m.UnmarshalTyped(data, pod)
		}))
		b.Run(without+"/unstructured", list(text, func(m *sharing.Memo, data []byte) (any, error) { return m.UnmarshalTree(data) }))
		b.Run(without+"/changes", func(b *testing.B) {
			var m *sharing.Memo
			state := 0
			notes := make([]sharing.Notes, benchPods)
			changes := func(held []any) {
				if m == nil {
					m = memo()
				}
				for i, data := range protobuf[state%2] {
					pod := &corev1.Pod{}
					var err error
					if notes[i], err = m.UnmarshalAfter(sharing.Last{Changes: true, Object: held[i], Notes: notes[i]}, data, pod); err != nil {
						b.Fatal(err)
					}
					held[i] = pod
				}
				state++
			}
			decoding(b, changes)
		})
	}
}

// BenchmarkDecoders decodes a list by several goroutines at once, which share a memo. Each takes
// batches of neighbours, as a stream does.
func BenchmarkDecoders(b *testing.B) {
	const batch = 32
	var all [][]byte
	for i := range benchPods {
		data, err := inState(i, 0).Marshal()
		require.NoError(b, err)
		all = append(all, data)
	}
	for _, decoders := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(decoders), func(b *testing.B) {
			decoding(b, func(held []any) {
				m, err := sharing.New()
				require.NoError(b, err)
				m.Listed(benchPods, 0)
				var running sync.WaitGroup
				for first := range decoders {
					running.Go(func() {
						for from := first * batch; from < benchPods; from += decoders * batch {
							for i := from; i < min(from+batch, benchPods); i++ {
								pod := &corev1.Pod{}
								if err := m.Unmarshal(all[i], pod); err != nil {
									b.Error(err)
								}
								held[i] = pod
							}
						}
					})
				}
				running.Wait()
			})
		})
	}
}

// BenchmarkSources decodes as many lists at once as there are sources: with one memory for their
// kind, or with one for each.
func BenchmarkSources(b *testing.B) {
	var all [][]byte
	for i := range benchPods {
		data, err := inState(i, 0).Marshal()
		require.NoError(b, err)
		all = append(all, data)
	}
	for _, sources := range []int{1, 2, 200} {
		for _, shape := range []string{"kind", "own"} {
			b.Run(fmt.Sprint(shape, "/", sources), func(b *testing.B) {
				decoding(b, func(held []any) {
					var running sync.WaitGroup
					common, err := sharing.New()
					require.NoError(b, err)
					for first := range sources {
						m := common.Another()
						if shape == "own" {
							m, err = sharing.New()
							require.NoError(b, err)
						}
						running.Go(func() {
							share := benchPods / sources
							for i := first * share; i < (first+1)*share; i++ {
								pod := &corev1.Pod{}
								if err := m.Unmarshal(all[i], pod); err != nil {
									b.Error(err)
								}
								held[i] = pod
							}
							m.Listed(share, share*len(all[0]))
						})
					}
					running.Wait()
				})
			})
		}
	}
}

// decoding reports CPU and heap of a function that decodes objects into a slice.
func decoding(b *testing.B, decode func(held []any)) {
	b.Helper()
	live := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	held := make([]any, benchPods)
	before := live()
	for range 4 {
		decode(held)
	}
	began, rounds := used(), 0
	b.ReportAllocs()
	for b.Loop() {
		decode(held)
		rounds++
	}
	b.ReportMetric(float64(used()-began)/float64(rounds*benchPods), "cpu-ns/object")
	b.ReportMetric((live()-before)/benchPods, "heap-B/object")
	runtime.KeepAlive(held)
}
