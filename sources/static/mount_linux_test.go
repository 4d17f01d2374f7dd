package static_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// TestUnmountedFolder mounts and unmounts a folder, in a namespace of its own.
func TestUnmountedFolder(t *testing.T) {
	if !inNamespaces(t, syscall.CLONE_NEWNS) {
		return
	}
	for name, device := range map[string]bool{"of another device": true, "of the same device": false} {
		t.Run(name, func(t *testing.T) {
			folder, from := t.TempDir(), t.TempDir()
			if device {
				require.NoError(t, syscall.Mount("tmpfs", from, "tmpfs", 0, ""))
				defer func() { require.NoError(t, syscall.Unmount(from, syscall.MNT_DETACH)) }()
			}
			mount := func() { require.NoError(t, syscall.Mount(from, folder, "", syscall.MS_BIND, "")) }
			umount := func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) }
			for _, name := range []string{"a", "b"} {
				put(t, filepath.Join(from, name+".yaml"), mapOf(name, "1"))
			}
			begin := func(path string, grace time.Duration) (*static.Reader[*corev1.ConfigMap], func() string) {
				o := static.File(path, manifest.Objects[corev1.ConfigMap](configMap),
					static.WithInterval(2*time.Millisecond), static.WithGrace(grace))
				return o, follow(t, o, shown)
			}
			o, next := begin(folder, time.Minute)
			require.Empty(t, next(), "an empty folder says that there is nothing: it may wait for its mount")
			well(t, o.Report)
			mount()
			require.Equal(t, "a=1 b=1", next())
			short, nextOfShort := begin(folder, 20*time.Millisecond)
			require.Equal(t, "a=1 b=1", nextOfShort())
			single, nextOfSingle := begin(filepath.Join(folder, "a.yaml"), time.Minute)
			require.Equal(t, "a=1", nextOfSingle())

			umount()
			problem(t, o.Report, folder+" has gone away with its mount: what it declared stays for 1m0s")
			problem(t, single.Report, folder+"/a.yaml has gone away: what it declared stays for 1m0s")
			require.Empty(t, nextOfShort())
			problem(t, short.Report, "has gone away with its mount for longer than 20ms, and what it declared with it")
			require.False(t, short.Report().Complete)
			mount()
			well(t, o.Report)
			well(t, single.Report)
			require.Equal(t, "a=1 b=1", nextOfShort())
			well(t, short.Report)

			umount()
			problem(t, o.Report, "has gone away with its mount")
			put(t, filepath.Join(folder, "c.yaml"), mapOf("c", "1"))
			if line := nextOfShort(); line == "" {
				require.Equal(t, "c=1", nextOfShort(), "others are there for longer than the grace")
			} else {
				require.Equal(t, "c=1", line)
			}
			well(t, short.Report)
			problem(t, o.Report, "has gone away with its mount: what it declared stays for 1m0s")
			mount()
			well(t, o.Report)
			put(t, filepath.Join(folder, "a.yaml"), mapOf("a", "2"))
			require.Equal(t, "a=2 b=1", next(), "and nothing else before")
			require.Equal(t, "a=2", nextOfSingle())
			umount()
		})
	}
}
