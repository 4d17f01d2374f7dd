package static

import (
	"path/filepath"
	"slices"
	"strings"
)

// isLeftover reports whether the name is that of a hidden file, or of a leftover of an editor or a
// package manager.
func isLeftover(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return true
	}
	switch filepath.Ext(name) {
	case ".bak", ".old", ".orig", ".rej", ".save", ".swp", ".swo", ".swx", ".tmp", ".part",
		".rpmnew", ".rpmsave", ".rpmorig", ".dpkg-new", ".dpkg-old", ".dpkg-dist", ".dpkg-tmp", ".dpkg-bak",
		".ucf-dist", ".ucf-new", ".ucf-old", ".pacnew", ".pacsave", ".pacorig", ".apk-new":
		return true
	}
	return false
}

// foreignNames and foreignExtensions are of files that stand beside manifests and are none. No
// extension that a manifest may have is here: a new manifest that is half-written is a problem.
var (
	foreignNames = []string{
		"authors", "changelog", "codeowners", "contributing", "copying", "license", "licence", "makefile", "notice", "owners",
		"readme", "version", "kustomization", "kustomization.yaml", "kustomization.yml",
	}
	foreignExtensions = []string{
		".adoc", ".asc", ".bz2", ".crt", ".csr", ".gz", ".htm", ".html", ".jpg", ".key", ".log", ".markdown", ".md", ".md5",
		".pdf", ".pem", ".png", ".py", ".rst", ".sh", ".sha256", ".sha512", ".sig", ".sum", ".svg", ".tar", ".tgz", ".txt", ".xz", ".zip",
	}
)

// isForeign reports whether a file has the name of something else than a manifest.
func isForeign(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	return slices.Contains(foreignNames, name) || slices.Contains(foreignExtensions, filepath.Ext(name))
}
