package sources_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// folder is a new folder of manifests.
func folder(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifests")
	require.NoError(t, os.Mkdir(path, 0o700))
	return path
}

// watching starts a file source that nothing but file events can tell of a change.
func watching(t *testing.T, path string, options ...static.Option) *rig {
	return start(t, sources.File(path, append([]static.Option{static.WithInterval(time.Hour)}, options...)...))
}

const fixed = "  uid: 11111111-fixed\n"

func TestFileFirstState(t *testing.T) {
	for _, row := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"an empty folder", nil, "ADD file"},
		{"only broken files", map[string]string{"a.yaml": "kind: Pod", "b.yaml": "{"}, "ADD file"},
		{"pods, by name", map[string]string{"a.yaml": manifestOf("b", "v1"), "b.yaml": manifestOf("a", "v1")},
			"ADD file a-node-1=v1 b-node-1=v1"},
		{"one is broken", map[string]string{"a.yaml": manifestOf("a", "v1"), "b.yaml": "{"}, "ADD file a-node-1=v1"},
		{"README, an empty file, another kind", map[string]string{
			"README": "Put manifests here.", "empty.yaml": "", "d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
		}, "ADD file"},
		{"two documents", map[string]string{"a.yaml": manifestOf("a", "v1") + "---\n" + manifestOf("b", "v1")},
			"ADD file a-node-1=v1 b-node-1=v1"},
		{"two documents, one is broken", map[string]string{"a.yaml": "kind: Pod\n---\n" + manifestOf("b", "v1")},
			"ADD file b-node-1=v1"},
		{"a PodList", map[string]string{"a.json": `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},` +
			`"spec":{"containers":[{"name":"c","image":"v1"}]}}]}`}, "ADD file a-node-1=v1"},
		{"leftovers and hidden files", map[string]string{
			".hidden.yaml": manifestOf("h", "v1"), "a.yaml~": manifestOf("a", "v1"), "#a.yaml#": manifestOf("a", "v1"),
			"a.yaml.bak": manifestOf("a", "v1"), "a.yaml.swp": "b0VIM", "a.yaml.rpmnew": manifestOf("n", "v1"),
			"a.yaml.dpkg-old": manifestOf("o", "v1"), "a.yaml.orig": manifestOf("o", "v1"), "a.yaml.tmp": manifestOf("o", "v1"),
			"a.yaml.pacnew": manifestOf("o", "v1"),
		}, "ADD file"},
		{"two files, one name: the first path wins", map[string]string{"a.yaml": manifestOf("p", "v1"), "b.yaml": manifestOf("p", "v2")},
			"ADD file p-node-1=v1"},
		{"two files, one uid", map[string]string{"a.yaml": manifestOf("a", "v1", fixed), "b.yaml": manifestOf("b", "v1", fixed)},
			"ADD file a-node-1=v1 b-node-1=v1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := folder(t)
			for name, content := range row.files {
				put(t, filepath.Join(path, name), content)
			}
			watching(t, path).expect(row.want)
		})
	}
}

func TestFileThatIsNotThereYet(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "etc", "manifests")
	r := watching(t, path)
	r.expect("ADD file")
	r.problem(path + " is not there")
	require.NoError(t, os.Mkdir(filepath.Join(parent, "etc"), 0o700))
	require.NoError(t, os.Mkdir(path, 0o700))
	put(t, filepath.Join(path, "a.yaml"), manifestOf("a", "v1"))
	r.expect("ADD file a-node-1=v1")
	r.healthy()
}

func TestFileChanges(t *testing.T) {
	path := folder(t)
	a, b := filepath.Join(path, "a.yaml"), filepath.Join(path, "b.yaml")
	r := watching(t, path)
	r.expect("ADD file")
	put(t, a, manifestOf("p", "v1"))
	r.expect("ADD file p-node-1=v1")
	put(t, a, manifestOf("p", "v2"))
	// another UID: it is a hash of the content
	r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	overwrite(t, a, manifestOf("p", "v3"))
	r.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v3")
	require.NoError(t, os.Rename(a, b)) // the folder is in the hash, and not the file
	hidden := filepath.Join(path, ".b.yaml")
	require.NoError(t, os.Rename(b, hidden))
	u := r.update()
	require.Equal(t, "REMOVE file p-node-1=v3", describe(u))
	require.NoError(t, os.Rename(hidden, b))
	back := r.update()
	require.Equal(t, "ADD file p-node-1=v3", describe(back))
	require.Equal(t, u.Pods[0].UID, back.Pods[0].UID)
	require.NoError(t, os.Remove(b))
	r.expect("REMOVE file p-node-1=v3") // the last one too: no empty ADD follows
	put(t, a, manifestOf("q", "v1"))
	r.expect("ADD file q-node-1=v1")
}

func TestFileWithAUIDOfItsOwn(t *testing.T) {
	path := filepath.Join(folder(t), "a.yaml")
	put(t, path, manifestOf("p", "v1", fixed))
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file p-node-1=v1")
	put(t, path, manifestOf("p", "v2", fixed))
	r.expect("UPDATE file p-node-1=v2")
	put(t, path, manifestOf("p", "v2", fixed, "  labels: {a: b}\n"))
	r.expect("UPDATE file p-node-1=v2")
	put(t, path, manifestOf("p", "v2", fixed, "  labels: {a: b}\n")+"status: {message: warming up}\n")
	r.expect("RECONCILE file p-node-1=v2")
	going := "  deletionTimestamp: 2030-01-01T00:00:00Z\n  deletionGracePeriodSeconds: 30\n"
	put(t, path, manifestOf("p", "v2", fixed, "  labels: {a: b}\n", going)+"status: {message: warming up}\n")
	r.expect("DELETE file p-node-1=v2")
	require.NoError(t, os.Remove(path))
	r.expect("REMOVE file p-node-1=v2")
}

// What was copied from an API server has a version, which no edit of a file changes.
func TestFileWithAVersionOfItsOwn(t *testing.T) {
	path := filepath.Join(folder(t), "a.yaml")
	version := "  resourceVersion: \"7\"\n"
	put(t, path, manifestOf("p", "v1", fixed, version))
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file p-node-1=v1")
	put(t, path, manifestOf("p", "v2", fixed, version))
	r.expect("UPDATE file p-node-1=v2")
}

func TestFileEditsThatAreNone(t *testing.T) {
	path := filepath.Join(folder(t), "a.yaml")
	put(t, path, manifestOf("p", "v1"))
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file p-node-1=v1")
	put(t, path, "# a comment\n"+manifestOf("p", "v1"))
	put(t, path, manifestOf("p", "v1")+"  restartPolicy: Always\n")
	require.NoError(t, os.Chmod(path, 0o640))
	age(t, path)
	put(t, filepath.Join(filepath.Dir(path), "z.yaml"), manifestOf("z", "v1"))
	r.expect("ADD file z-node-1=v1")
}

func TestFileThatTurnsBad(t *testing.T) {
	t.Parallel() // it waits
	secret := "hunter2"
	for _, row := range []struct{ name, content, problem string }{
		{"half-written", "apiVersion: v1\nkind: Pod\nmeta", "a.yaml"},
		{"empty", "", "a.yaml"},
		{"invalid", manifestOf("p", "''") + "# " + secret, "spec.containers[0].image"},
		{"binary", "\x00\x01\x02" + secret, "a.yaml"},
		{"10 MiB", strings.Repeat("# "+secret+"\n", manifest.MaxSize/10+1), "10 MiB or more are not read"},
		{"another kind", "apiVersion: v1\nkind: Secret\nmetadata: {name: p}\nstringData: {a: " + secret + "}\n", "kind"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(folder(t), "a.yaml")
			put(t, path, manifestOf("p", "v1"))
			var log logLines
			r := start(t, sources.WithLogger(log.logger()), sources.File(filepath.Dir(path), static.WithInterval(time.Hour)))
			r.expect("ADD file p-node-1=v1")
			put(t, path, row.content)
			require.NotContains(t, r.problem(row.problem), secret)
			require.Equal(t, 1, r.Status()[0].Pods, "the last good pod stays")
			// What comes and goes beside it changes nothing for it.
			other := filepath.Join(filepath.Dir(path), "other.yaml")
			put(t, other, manifestOf("other", "v1"))
			r.expect("ADD file other-node-1=v1")
			require.NoError(t, os.Remove(other))
			r.expect("REMOVE file other-node-1=v1")
			put(t, path, manifestOf("p", "v2"))
			r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
			r.healthy()
			put(t, path, row.content)
			r.problem(row.problem)
			require.NoError(t, os.Remove(path))
			r.expect("REMOVE file p-node-1=v2")
			r.healthy()
			require.NotContains(t, log.text(), secret)
		})
	}
}

func TestFileHalfWrittenThatIsAPodAlready(t *testing.T) {
	path := filepath.Join(folder(t), "a.yaml")
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file")
	half := manifestOf("p", "v1")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	// Each piece makes another pod of it, and comes before the file has been left alone for long
	// enough.
	_, err = file.WriteString(half)
	require.NoError(t, err)
	last := time.Now()
	for i, tick := 0, time.NewTicker(10*time.Millisecond); i < 10; i++ {
		<-tick.C
		_, err = fmt.Fprintf(file, "  - name: more-%d\n    image: v1\n", i)
		require.NoError(t, err)
		if time.Since(last) > 90*time.Millisecond {
			t.Skip("the machine is too busy to write without a pause")
		}
		last = time.Now()
	}
	u := r.update()
	require.Equal(t, sources.Add, u.Op)
	require.Len(t, u.Pods[0].Spec.Containers, 11)
}

func TestFileThatDoesNotStopChanging(t *testing.T) {
	t.Parallel() // it waits
	path := filepath.Join(folder(t), "a.yaml")
	put(t, path, manifestOf("p", "v0"))
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file p-node-1=v0")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
				_ = os.WriteFile(path, []byte(manifestOf("p", "v1")), 0o600)
			case <-stop:
				return
			}
		}
	}()
	r.problem("does not stop changing")
	require.Equal(t, 1, r.Status()[0].Pods, "the last good pod stays")
	close(stop)
	<-done
	r.expect("REMOVE file p-node-1=v0", "ADD file p-node-1=v1")
	r.healthy()
}

func TestFilesOfOneName(t *testing.T) {
	path := folder(t)
	a, b := filepath.Join(path, "a.yaml"), filepath.Join(path, "b.yaml")
	put(t, b, manifestOf("p", "of b"))
	r := watching(t, path)
	r.expect("ADD file p-node-1=of b")
	put(t, a, manifestOf("p", "of a"))
	require.Equal(t, a+": default/p-node-1 is declared by "+b+" already and stands by", r.problem("stands by"))
	put(t, b, manifestOf("p", "of b, edited"))
	r.expect("REMOVE file p-node-1=of b", "ADD file p-node-1=of b, edited")
	require.NoError(t, os.Remove(b))
	r.expect("REMOVE file p-node-1=of b, edited", "ADD file p-node-1=of a")
	r.healthy()
	put(t, b, manifestOf("p", "of b"))
	r.problem("stands by")
	require.NoError(t, os.Remove(b)) // the file that stands by: nothing
	r.healthy()
	put(t, b, manifestOf("p", "of b"))
	r.problem("stands by")
	// the file names another pod: a swap, at once, and the next file is promoted
	put(t, a, manifestOf("q", "v1"))
	r.expect("REMOVE file p-node-1=of a", "ADD file p-node-1=of b q-node-1=v1")
	r.healthy()
}

func TestFileLeftoversAreCounted(t *testing.T) {
	path := folder(t)
	put(t, filepath.Join(path, "a.yaml"), manifestOf("p", "v1"))
	for _, name := range []string{".a.yaml.swp", "a.yaml.bak", "a.yaml.rpmsave", "a.yaml~", "#a.yaml#"} {
		put(t, filepath.Join(path, name), manifestOf("p", "old"))
	}
	r := watching(t, path)
	r.expect("ADD file p-node-1=v1")
	require.Equal(t, 5, r.Status()[0].Skipped)
	require.Empty(t, r.Status()[0].Problems)
}

func TestFileSubfolder(t *testing.T) {
	path := folder(t)
	require.NoError(t, os.Mkdir(filepath.Join(path, "more"), 0o700))
	put(t, filepath.Join(path, "more", "a.yaml"), manifestOf("p", "v1"))
	r := watching(t, path)
	r.expect("ADD file")
	r.problem("more is a folder")
}

func TestManyFilesAtOnce(t *testing.T) {
	path := folder(t)
	r := watching(t, path)
	r.expect("ADD file")
	for i := range 6 {
		put(t, filepath.Join(path, fmt.Sprint(i, ".yaml")), manifestOf(fmt.Sprint("p", i), "v1"))
	}
	held := map[string]bool{}
	for len(held) < 6 {
		u := r.update()
		require.Equal(t, sources.Add, u.Op)
		for _, pod := range u.Pods {
			held[pod.Name] = true
		}
	}
}

func TestSingleFile(t *testing.T) {
	path := filepath.Join(folder(t), "pod.yaml")
	put(t, path, manifestOf("p", "v1"))
	r := watching(t, path)
	r.expect("ADD file p-node-1=v1")
	overwrite(t, path, manifestOf("p", "v2"))
	r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	for _, image := range []string{"v3", "v4", "v5"} {
		put(t, path, manifestOf("p", image)) // by a rename, again and again
		u := r.update()
		require.Equal(t, sources.Remove, u.Op)
		r.expect("ADD file p-node-1=" + image)
	}
	put(t, path, "kind: Pod")
	r.problem("pod.yaml")
	require.Equal(t, 1, r.Status()[0].Pods)
	require.NoError(t, os.Remove(path))
	r.expect("REMOVE file p-node-1=v5")
	r.healthy()
	put(t, path, manifestOf("p", "v6"))
	r.expect("ADD file p-node-1=v6")
}

func TestSingleFileThatWasNeverGood(t *testing.T) {
	path := filepath.Join(folder(t), "pod.yaml")
	put(t, path, "kind: Pod")
	r := watching(t, path)
	r.problem("pod.yaml")
	require.False(t, r.Status()[0].Seen)
	put(t, path, manifestOf("p", "v1"))
	r.expect("ADD file p-node-1=v1") // and no empty ADD before: nobody knew that there was nothing
}

func TestFolderThatGoesAway(t *testing.T) {
	path := folder(t)
	put(t, filepath.Join(path, "a.yaml"), manifestOf("a", "v1"))
	r := watching(t, path)
	r.expect("ADD file a-node-1=v1")
	require.NoError(t, os.Rename(path, path+".away"))
	r.problem("has gone away: what it declared stays for 1m0s")
	require.Equal(t, 1, r.Status()[0].Pods)
	require.NoError(t, os.Mkdir(path, 0o700))
	put(t, filepath.Join(path, "b.yaml"), manifestOf("b", "v1"))
	var held []string
	for len(held) == 0 || held[len(held)-1] != "ADD file b-node-1=v1" {
		// a's file is gone, with or before b's coming
		held = append(held, r.next())
	}
	require.Contains(t, held, "REMOVE file a-node-1=v1")
	r.healthy()
	// The new folder is watched, and the old one is not.
	put(t, filepath.Join(path+".away", "c.yaml"), manifestOf("c", "v1"))
	put(t, filepath.Join(path, "d.yaml"), manifestOf("d", "v1"))
	r.expect("ADD file d-node-1=v1")
}

func TestFolderRemovedAndMadeAgain(t *testing.T) {
	path := folder(t)
	r := watching(t, path)
	r.expect("ADD file")
	for i := range 10 {
		require.NoError(t, os.RemoveAll(path))
		// often with the number of the inode that was freed
		require.NoError(t, os.Mkdir(path, 0o700))
		name := filepath.Join(path, "a.yaml")
		put(t, name, manifestOf(fmt.Sprint("p", i), "v1"))
		r.expect(fmt.Sprintf("ADD file p%d-node-1=v1", i))
		require.NoError(t, os.Remove(name))
		r.expect(fmt.Sprintf("REMOVE file p%d-node-1=v1", i))
	}
}

func TestGraceEnds(t *testing.T) {
	path := folder(t)
	put(t, filepath.Join(path, "a.yaml"), manifestOf("a", "v1"))
	r := watching(t, path, static.WithGrace(50*time.Millisecond))
	r.expect("ADD file a-node-1=v1")
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	for u := r.next(); u != "REMOVE file a-node-1=v1"; u = r.next() {
		require.FailNow(t, u)
	}
	r.problem("for longer than 50ms")
	require.False(t, r.SafeToPrune(sources.FileSource))
}

func TestSingleFileWhoseMountIsAway(t *testing.T) {
	mount := folder(t)
	path := filepath.Join(mount, "pod.yaml")
	put(t, path, manifestOf("p", "v1"))
	r := watching(t, path)
	r.expect("ADD file p-node-1=v1")
	require.NoError(t, os.Rename(mount, mount+".away"))
	r.problem("has gone away")
	require.NoError(t, os.Rename(mount+".away", mount))
	r.healthy()
	put(t, path, manifestOf("p", "v2"))
	r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
}

func TestFileOptions(t *testing.T) {
	for _, row := range []struct {
		option static.Option
		want   string
	}{
		{static.WithInterval(0), "WithInterval(0s)"},
		{static.WithGrace(-1), "WithGrace(-1ns)"},
		{static.WithTimeout(0), "WithTimeout(0s)"},
		{static.WithTransport(nil), "WithTransport(nil)"},
	} {
		for _, source := range []sources.Option{sources.File(t.TempDir(), row.option), sources.HTTP("http://localhost", row.option)} {
			require.ErrorContains(t, sources.New("node-1", source).Run(t.Context()), row.want)
		}
	}
}
