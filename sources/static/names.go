package static

import (
	"path/filepath"
	"regexp"
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

// The affixes by which people and file managers name a copy. Any text that a space sets apart
// counts, since file managers write in every language.
var (
	beforeCopy = regexp.MustCompile(`(?i)^(.* |(copy|backup|bak|old|orig|new|tmp|temp)([._-]of)?[._-])$`)
	behindCopy = regexp.MustCompile(`(?i)^( .*|~.*|\(.*\)|[._-]\d{4}-?\d\d-?\d\d.*|` +
		`[._-](copy|backup|bak|old|orig|original|saved?|prev|previous|new|tmp|temp|draft|disabled)([^a-z].*)?)$`)
)

// isCopy reports whether the path is, by its name alone, a copy of the original: "web (copy).yaml",
// "Copy of web.yaml", "web-old.yaml" and "web.yaml.1" are copies of "web.yaml". Without an original
// such a name means nothing.
func isCopy(path, original string) bool {
	name, of := filepath.Base(path), filepath.Base(original)
	if len(name) <= len(of) {
		return false
	}
	if rest, ok := strings.CutPrefix(name, of); ok && strings.ContainsRune("._-~ (", rune(rest[0])) {
		return true
	}
	extension := filepath.Ext(of)
	stem := strings.TrimSuffix(of, extension)
	name, same := strings.CutSuffix(name, extension)
	if !same || stem == "" {
		return false
	}
	for at := 0; at+len(stem) <= len(name); at++ {
		before, behind := name[:at], name[at+len(stem):]
		if name[at:at+len(stem)] == stem && (before == "" || beforeCopy.MatchString(before)) &&
			(behind == "" || behindCopy.MatchString(behind)) {
			return true
		}
	}
	return false
}
