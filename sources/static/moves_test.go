package static_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// TestWhatMovesDuringALook is moved by the function that decodes, after the folder was listed and
// before the files behind that one are looked at. No state lacks an object.
func TestWhatMovesDuringALook(t *testing.T) {
	for name, row := range map[string]struct {
		moves, after func(folder string) error
		problem      string
	}{
		"the folder is moved away": {
			func(folder string) error { return os.Rename(folder, folder+".away") },
			func(folder string) error { return os.Rename(folder+".away", folder) },
			"has gone away: what it declared stays for 1m0s",
		},
		"the folder is moved away, and another one is made": {
			func(folder string) error {
				return errors.Join(os.Rename(folder, folder+".away"), os.Mkdir(folder, 0o700))
			},
			func(folder string) error {
				return errors.Join(os.Remove(folder), os.Rename(folder+".away", folder))
			},
			"",
		},
		"a file is renamed to a name that was passed already": {
			func(folder string) error {
				return os.Rename(filepath.Join(folder, "c.yaml"), filepath.Join(folder, "0.yaml"))
			},
			func(string) error { return nil },
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "manifests")
			require.NoError(t, os.Mkdir(folder, 0o700))
			a := filepath.Join(folder, "a.yaml")
			for _, name := range []string{"a", "b", "c"} {
				put(t, filepath.Join(folder, name+".yaml"), mapOf(name, "1"))
			}
			moves, all := make(chan struct{}, 1), manifest.Objects[corev1.ConfigMap](configMap)
			o := static.File(folder, func(path string, data []byte) ([]*corev1.ConfigMap, []error) {
				select {
				case <-moves:
					require.NoError(t, row.moves(folder))
				default:
				}
				return all(path, data)
			}, static.WithInterval(time.Hour))
			next := follow(t, o, shown)
			require.Equal(t, "a=1 b=1 c=1", next())
			moves <- struct{}{}
			put(t, a, mapOf("a", "2"))
			require.Equal(t, "a=2 b=1 c=1", next())
			if row.problem != "" {
				problem(t, o.Report, row.problem)
			}
			require.NoError(t, row.after(folder))
			well(t, o.Report)
			put(t, a, mapOf("a", "3"))
			line := next()
			require.Contains(t, []string{"a=3 b=1 c=1", "c=1 a=3 b=1"}, line)
		})
	}
}

// TestAHurriedCopyBesideAnOlderOne: the holder of an object is copied and removed at once, and the
// copy is not read yet. A third file that declares the object in another way stands by for good.
func TestAHurriedCopyBesideAnOlderOne(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	put(t, in("web.yaml"), mapOf("web", "1"))
	put(t, in("Copy of web.yaml"), mapOf("web", "2"))
	o := static.File(folder, manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(time.Hour))
	next := follow(t, o, shown)
	require.Equal(t, "web=1", next())

	require.NoError(t, os.WriteFile(in("web2.yaml"), []byte(mapOf("web", "1")), 0o600))
	require.NoError(t, os.Remove(in("web.yaml")))
	put(t, in("mark.yaml"), mapOf("mark", "1"))
	for line := ""; line != "mark=1 web=1"; line = next() {
		require.NotContains(t, line, "web=2")
	}
	require.NoError(t, os.Remove(in("web2.yaml")))
	require.Equal(t, "web=2 mark=1", next(), "by then the older copy is the only one")
}
