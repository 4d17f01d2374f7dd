package sources_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// TestPodsOfWhatMoves: a look at a folder takes many steps, and what they find can move between
// any two of them. No pod is lost that is declared before and after, by whatever path.
func TestPodsOfWhatMoves(t *testing.T) {
	const files, moves = 200, 60
	file := func(path string, generation, i int) string {
		return filepath.Join(path, fmt.Sprintf("%d-%d.yaml", generation, i))
	}
	for name, row := range map[string]struct {
		path func(folder string) string
		move func(t *testing.T, folder string, generation int)
	}{
		"a folder is moved away and back": {
			func(folder string) string { return folder },
			func(t *testing.T, folder string, _ int) {
				require.NoError(t, os.Rename(folder, folder+".away"))
				pauseBriefly()
				require.NoError(t, os.Rename(folder+".away", folder))
			},
		},
		"the folder of a single file is moved away and back": {
			func(folder string) string { return file(folder, 0, 0) },
			func(t *testing.T, folder string, _ int) {
				require.NoError(t, os.Rename(folder, folder+".away"))
				pauseBriefly()
				require.NoError(t, os.Rename(folder+".away", folder))
			},
		},
		"files are renamed": {
			func(folder string) string { return folder },
			func(t *testing.T, folder string, generation int) {
				for i := range files {
					require.NoError(t, os.Rename(file(folder, generation, i), file(folder, generation+1, i)))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := folder(t)
			for i := range files {
				put(t, file(path, 0, i), manifestOf(fmt.Sprint("p", i), "v1"))
			}
			r := watching(t, row.path(path), static.WithInterval(time.Millisecond))
			first := r.update()
			require.Equal(t, sources.Add, first.Op)
			lost := make(chan string, 1)
			go func() {
				defer close(lost)
				for u := range r.Updates() {
					if u.Op == sources.Remove {
						lost <- fmt.Sprint(len(u.Pods), " of ", len(first.Pods), " pods were removed")
						return
					}
				}
			}()
			for generation := range moves {
				row.move(t, path, generation)
				pauseBriefly()
			}
			require.Eventually(t, func() bool {
				status := r.Status()[0]
				return len(lost) > 0 || status.Pods == len(first.Pods) && len(status.Problems) == 0
			}, patience, time.Millisecond, "%+v", r.Status())
			r.stop()
			require.Empty(t, <-lost)
		})
	}
}

// pauseBriefly lets others run for up to a millisecond, by no clock.
func pauseBriefly() {
	for range rand.IntN(1000) {
		runtime.Gosched()
	}
}
