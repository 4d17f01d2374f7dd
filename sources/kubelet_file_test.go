package sources_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// The sequences below were observed with the kubelet 1.36.3.

const noPod = "kind: Pod\n"

var podV1, podV2 = manifestOf("p", "v1"), manifestOf("p", "v2")

// kubelet is a source that works like the kubelet's, in a folder, with a period that the test ends.
type kubelet struct {
	*rig
	folder string
	ticks  chan time.Time
}

// likeKubelet starts a file source on a path in a new folder of these files.
func likeKubelet(t *testing.T, name string, files ...string) *kubelet {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the sequences were observed with inotify")
	}
	k := &kubelet{folder: folder(t), ticks: make(chan time.Time)}
	for i := 0; i < len(files); i += 2 {
		put(t, k.path(files[i]), files[i+1])
	}
	k.rig = start(t, sources.LikeKubelet(),
		sources.File(k.path(name), static.WithInterval(time.Hour), sources.Ticks(k.ticks)))
	return k
}

func (k *kubelet) path(name string) string { return filepath.Join(k.folder, name) }

func (k *kubelet) put(name, content string) {
	k.t.Helper()
	put(k.t, k.path(name), content)
}

func (k *kubelet) remove(name string) {
	k.t.Helper()
	require.NoError(k.t, os.Remove(k.path(name)))
}

// period lets the period be over. The look that follows is done before anything else is.
func (k *kubelet) period() {
	k.t.Helper()
	select {
	case k.ticks <- time.Now():
	case <-time.After(patience):
		require.FailNow(k.t, "the source hangs")
	}
}

// watched waits for the watch, which begins while the files are being read for the first time.
func (k *kubelet) watched() {
	k.t.Helper()
	require.Eventually(k.t, func() bool { return strings.HasPrefix(k.Status()[0].Mode, "inotify") }, patience, time.Millisecond)
}

// missed waits until the watch has found nothing to watch; it looks again a second later.
func (k *kubelet) missed() {
	k.t.Helper()
	require.Eventually(k.t, func() bool { return strings.Contains(k.Status()[0].Mode, "no such file") }, patience, time.Millisecond)
}

// nothing wants no update to be on its way: a new pod is the next thing that is told.
func (k *kubelet) nothing() {
	k.t.Helper()
	k.put("zz.yaml", manifestOf("zz", "v1"))
	k.expect("ADD file zz-node-1=v1")
	k.remove("zz.yaml")
	k.expect("REMOVE file zz-node-1=v1")
}

func TestKubeletEmptyFolder(t *testing.T) { likeKubelet(t, "").expect("ADD file") }

func TestKubeletOnlyBrokenFiles(t *testing.T) {
	likeKubelet(t, "", "a.yaml", noPod).expect("ADD file")
}

func TestKubeletFolderMadeLater(t *testing.T) {
	t.Parallel() // it waits
	k := likeKubelet(t, "sub")
	k.expect("ADD file")
	k.missed()
	require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
	k.put("sub/a.yaml", podV1)
	k.watched() // it is looked for each second, but not read
	k.put("sub/b.yaml", manifestOf("b", "v1"))
	k.expect("ADD file b-node-1=v1")
	k.period()
	k.expect("ADD file p-node-1=v1")
}

func TestKubeletPodsAtTheStart(t *testing.T) {
	likeKubelet(t, "", "a.yaml", podV1, "b.yaml", manifestOf("q", "v1")).expect("ADD file p-node-1=v1 q-node-1=v1")
}

func TestKubeletAddEditDelete(t *testing.T) {
	k := likeKubelet(t, "")
	k.expect("ADD file")
	k.watched()
	k.put("a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.put("a.yaml", podV2)
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	k.remove("a.yaml")
	k.expect("REMOVE file p-node-1=v2")
	k.nothing()
}

func TestKubeletEachFileIsOneAdd(t *testing.T) {
	k := likeKubelet(t, "")
	k.expect("ADD file")
	k.watched()
	for i := range 6 {
		k.put(fmt.Sprint(i, ".yaml"), manifestOf(fmt.Sprint("p", i), "v1"))
	}
	for i := range 6 {
		k.expect(fmt.Sprintf("ADD file p%d-node-1=v1", i))
	}
}

func TestKubeletUIDOfItsOwn(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", manifestOf("p", "v1", fixed))
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", manifestOf("p", "v2", fixed))
	k.expect("UPDATE file p-node-1=v2")
	k.put("a.yaml", manifestOf("p", "v2", fixed)+"status: {message: warming up}\n")
	k.expect("RECONCILE file p-node-1=v2")
	k.put("a.yaml", manifestOf("p", "v2", fixed, "  deletionTimestamp: 2030-01-01T00:00:00Z\n"))
	k.expect("DELETE file p-node-1=v2")
	k.remove("a.yaml")
	k.expect("REMOVE file p-node-1=v2")
}

func TestKubeletEditsThatAreNone(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", "# comment\n"+podV1)
	k.put("a.yaml", podV1+"  restartPolicy: Always\n")
	require.NoError(t, os.Chmod(k.path("a.yaml"), 0o640))
	age(t, k.path("a.yaml"))
	k.put(".hidden.yaml", manifestOf("hidden", "v1"))
	k.nothing()
}

func TestKubeletRenamed(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	require.NoError(t, os.Rename(k.path("a.yaml"), k.path(".a.yaml")))
	gone := k.update()
	require.NoError(t, os.Rename(k.path(".a.yaml"), k.path("a.yaml")))
	back := k.update()
	require.Equal(t, []string{"REMOVE file p-node-1=v1", "ADD file p-node-1=v1"}, []string{describe(gone), describe(back)})
	require.Equal(t, gone.Pods[0].UID, back.Pods[0].UID)
}

func TestKubeletBrokenIsGoneAtTheNextPeriod(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1, "b.yaml", manifestOf("b", "v1"))
	k.expect("ADD file b-node-1=v1 p-node-1=v1")
	k.watched()
	k.put("a.yaml", noPod)
	k.problem("a.yaml")
	k.nothing()
	k.period()
	k.expect("REMOVE file p-node-1=v1")
	k.put("a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
}

func TestKubeletTheOnlyFileBrokenComesBackWithAnyOther(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", noPod)
	k.problem("a.yaml")
	k.period()
	k.expect("REMOVE file p-node-1=v1")
	k.put("b.yaml", manifestOf("b", "v1"))
	k.expect("ADD file b-node-1=v1 p-node-1=v1")
	k.period()
	k.expect("REMOVE file p-node-1=v1")
}

func TestKubeletTwoFilesOneName(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1, "b.yaml", podV2)
	k.expect("ADD file p-node-1=v2")
	k.watched()
	age(t, k.path("a.yaml")) // touch
	k.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v1")
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	k.remove("a.yaml")
	k.expect("REMOVE file p-node-1=v2")
	k.nothing()
	k.period()
	k.expect("ADD file p-node-1=v2")
}

func TestKubeletBackupUndoesAnEdit(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1, "a.yaml.bak", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", podV2)
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	k.period()
	k.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v1")
}

func TestKubeletTwoFilesOneUID(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", manifestOf("a", "v1", fixed), "b.yaml", manifestOf("b", "v1", fixed))
	k.expect("ADD file a-node-1=v1 b-node-1=v1")
	k.watched()
	k.remove("b.yaml")
	k.nothing()
	k.period()
	k.nothing()
}

// The kubelet's merge writes into the source's own object, which is no change of itself then.
func TestKubeletSecondFileOfOneUIDWins(t *testing.T) {
	k := likeKubelet(t, "", "z.yaml", manifestOf("z", "v1", fixed))
	k.expect("ADD file z-node-1=v1")
	k.watched()
	k.put("a.yaml", manifestOf("a", "v2", fixed))
	k.expect("UPDATE file z-node-1=v2")
	k.nothing()
}

// The kubelet reads the path of a folder as a pattern, and watches it by its name.
func TestKubeletFolderIsAPattern(t *testing.T) {
	for name, last := range map[string]string{"m[1]": "found", "m?": "named", "m*": "found"} {
		// of one pod, the last file counts
		t.Run(name, func(t *testing.T) {
			k := &kubelet{rig: &rig{t: t}, folder: folder(t), ticks: make(chan time.Time)}
			for folder, image := range map[string]string{name: "named", "m1": "found"} {
				require.NoError(t, os.Mkdir(k.path(folder), 0o700))
				k.put(folder+"/a.yaml", manifestOf("p", image))
			}
			k.rig = start(t, sources.LikeKubelet(), sources.File(k.path(name), static.WithInterval(time.Hour), sources.Ticks(k.ticks)))
			k.expect("ADD file p-node-1=" + last)
			k.watched()
			k.put(name+"/b.yaml", manifestOf("q", "v1"))
			k.expect("ADD file q-node-1=v1")

			start(t, sources.File(k.path(name), static.WithInterval(time.Hour))).
				expect("ADD file p-node-1=named q-node-1=v1") // by its name alone
		})
	}
}

func TestKubeletFolderIsABadPattern(t *testing.T) {
	k := &kubelet{rig: &rig{t: t}, folder: folder(t), ticks: make(chan time.Time)}
	require.NoError(t, os.Mkdir(k.path("m["), 0o700))
	k.put("m[/a.yaml", podV1)
	k.rig = start(t, sources.LikeKubelet(), sources.File(k.path("m["), static.WithInterval(time.Hour), sources.Ticks(k.ticks)))
	k.problem("syntax error in pattern")
	start(t, sources.File(k.path("m["), static.WithInterval(time.Hour))).expect("ADD file p-node-1=v1")
}

// The kubelet's glob finds nothing in a folder that may not be read.
func TestKubeletUnreadableFolderIsEmpty(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	require.NoError(t, os.Chmod(k.folder, 0o100))
	t.Cleanup(func() { _ = os.Chmod(k.folder, 0o700) })
	k.period()
	k.expect("REMOVE file p-node-1=v1")
	k.problem("permission denied")
}

func TestKubeletFileNamesAnotherPod(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", manifestOf("q", "v1"))
	k.expect("ADD file q-node-1=v1")
	k.period()
	k.expect("REMOVE file p-node-1=v1")
	k.put("a.yaml", manifestOf("r", "v1"))
	k.expect("ADD file r-node-1=v1")
	k.remove("a.yaml")
	k.expect("REMOVE file r-node-1=v1")
	k.nothing()
	k.period()
	k.expect("REMOVE file q-node-1=v1")
}

func TestKubeletSubfolder(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	require.NoError(t, os.Mkdir(k.path("more"), 0o700))
	k.period()
	k.problem("more is not a regular file")
}

func TestKubeletFirstDocument(t *testing.T) {
	likeKubelet(t, "", "a.yaml", podV1+"---\n"+manifestOf("q", "v1")).expect("ADD file p-node-1=v1")
}

func TestKubeletWhatIsNoPod(t *testing.T) {
	likeKubelet(t, "", "README", "Hello.", "empty", "", "l.json", podList(item("p", "v1")),
		"d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n").expect("ADD file")
}

func TestKubeletSymlinkToAFile(t *testing.T) {
	target := filepath.Join(t.TempDir(), "real.yaml")
	put(t, target, podV1)
	k := likeKubelet(t, "")
	k.expect("ADD file")
	k.watched()
	require.NoError(t, os.Symlink(target, k.path("a.yaml")))
	k.expect("ADD file p-node-1=v1")
	put(t, target, podV2)
	k.nothing()
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
}

// A ConfigMap's ..data is switched: its name begins with a dot, and the file's own link does not
// change, so that no event counts, and the period sees it.
func TestKubeletConfigMapSwap(t *testing.T) {
	k := likeKubelet(t, "")
	k.expect("ADD file")
	k.watched()
	version := func(name, image string) {
		require.NoError(t, os.Mkdir(k.path(name), 0o700))
		put(t, k.path(name+"/a.yaml"), manifestOf("p", image))
		require.NoError(t, os.Symlink(name, k.path("..data_tmp")))
		require.NoError(t, os.Rename(k.path("..data_tmp"), k.path("..data")))
	}
	version("..v1", "v1")
	require.NoError(t, os.Symlink("..data/a.yaml", k.path("a.yaml")))
	k.expect("ADD file p-node-1=v1")
	version("..v2", "v2")
	k.nothing()
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
}

// The link that is the folder is switched: the watch stays with the old folder for ever, where
// nothing that happens is any more what it seems to be, and the period sees the new one.
func TestKubeletFolderSwitched(t *testing.T) {
	t.Parallel() // it waits
	k := likeKubelet(t, "current")
	k.expect("ADD file")
	k.missed()
	for _, name := range []string{"r1", "r2"} {
		require.NoError(t, os.Mkdir(k.path(name), 0o700))
	}
	k.put("r2/b.yaml", manifestOf("b", "v1"))
	require.NoError(t, os.Symlink("r1", k.path("current")))
	k.watched()
	k.put("r1/a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	require.NoError(t, os.Symlink("r2", k.path("new")))
	require.NoError(t, os.Rename(k.path("new"), k.path("current")))
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file b-node-1=v1")
	k.put("r2/c.yaml", manifestOf("c", "v1")) // no event ever comes of it
	k.period()
	k.expect("ADD file c-node-1=v1")
}

func TestKubeletFolderRemovedAndMadeAgain(t *testing.T) {
	t.Parallel() // it waits
	k := likeKubelet(t, "sub")
	k.expect("ADD file")
	k.missed()
	require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
	k.watched()
	require.NoError(t, os.RemoveAll(k.path("sub")))
	require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
	k.put("sub/a.yaml", podV1) // no event ever comes again
	k.period()
	k.expect("ADD file p-node-1=v1")
	k.put("sub/a.yaml", podV2)
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
}

func TestKubeletSingleFileEditedAndRemoved(t *testing.T) {
	k := likeKubelet(t, "a.yaml", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	file, err := os.OpenFile(k.path("a.yaml"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = io.WriteString(file, "    command: [sleep]\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v1")
	k.remove("a.yaml")
	k.expect("REMOVE file p-node-1=v1")
}

func TestKubeletSingleFileReplaced(t *testing.T) {
	k := likeKubelet(t, "a.yaml", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	k.put("a.yaml", podV2)
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2", "REMOVE file p-node-1=v2")
	k.period()
	k.expect("ADD file p-node-1=v2")
}

func TestKubeletSingleFileBrokenStays(t *testing.T) {
	k := likeKubelet(t, "a.yaml", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	overwrite(t, k.path("a.yaml"), noPod)
	k.period()
	k.problem("a.yaml")
	overwrite(t, k.path("a.yaml"), podV2)
	k.period()
	k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
}

func TestKubeletSingleFileBrokenAtTheStart(t *testing.T) {
	k := likeKubelet(t, "a.yaml", "a.yaml", noPod)
	k.problem("a.yaml")
	k.period()
	overwrite(t, k.path("a.yaml"), podV1)
	k.period()
	k.expect("ADD file p-node-1=v1")
}

func TestKubelet10MiB(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1+strings.Repeat("#", manifest.MaxSize-len(podV1)),
		"b.yaml", manifestOf("q", "v1")+strings.Repeat("#", manifest.MaxSize-len(podV1)-1))
	k.expect("ADD file q-node-1=v1")
}
