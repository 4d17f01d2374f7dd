package static

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfCopies(t *testing.T) {
	for _, name := range []string{
		"web (copy).yaml", "web (1).yaml", "web(1).yaml", "web - Copy.yaml", "web - Kopie (2).yaml", "web copy 2.yaml",
		"Copy of web.yaml", "Copy (2) of web.yaml", "Kopie von web.yaml", "copy-of-web.yaml", "old-web.yaml", "backup_web.yaml",
		"web-old.yaml", "web_OLD.yaml", "web.bak.yaml", "web-backup-2.yaml", "web.orig.yaml", "web-new.yaml", "web.tmp.yaml",
		"web-20261122.yaml", "web-2026-11-22T10.yaml", "web~.yaml", "web.yaml.1", "web.yaml-old", "web.yaml~2", "web.yaml (copy)",
		"Copy of web (2).yaml", "web-old (3).yaml",
	} {
		require.True(t, isCopy("/etc/manifests/"+name, "/etc/manifests/web.yaml"), name)
		require.False(t, isCopy("/etc/manifests/web.yaml", "/etc/manifests/"+name), name)
	}
	for _, name := range []string{
		"web.yaml", "web.json", "web.yml", "web2.yaml", "web-2.yaml", "webserver.yaml", "web-canary.yaml", "web-older.yaml", "myweb.yaml",
		"web-newest.yaml", "a-web.yaml", "w.yaml", "db.yaml", "old.yaml", "web-old.json", "web.yaml2", "cobweb.yaml",
	} {
		require.False(t, isCopy(name, "web.yaml"), name)
	}
	require.True(t, isCopy("web-old (2).yaml", "web-old.yaml"))
	require.True(t, isCopy("manifest.1", "manifest"))
	require.False(t, isCopy("manifests", "manifest"))
	require.False(t, isCopy("copy of .yaml", ".yaml"))
}
