package sources_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
)

// folderNames are the files of the model, and whether each is passed over as a leftover.
var folderNames = map[string]bool{
	"web.yaml": false, "db.yaml": false, "a.yaml": false, "web2.yaml": false, "web-old.yaml": false, "db.bak.yaml": false,
	"Copy of web.yaml": false, "web.yaml.bak": true, ".db.yaml.swp": true, "README.md": false,
}

// commented is a manifest without a document.
const commented = "# kind: Pod\n"

// modelFile is a file of the model: its bytes, and by pod the image of what it declares, or
// declared when last good. Pods of the latter kind are held.
type modelFile struct {
	text  string
	pods  map[string]string
	held  map[string]bool
	good  bool // it was good once
	hides bool // it may declare a pod that was never read
}

// folderModel says which pods must run, as simply as it can be said.
type folderModel struct {
	files   map[string]*modelFile
	holders map[string]string // by pod, the file
	texts   map[string]map[string]string
}

// write gives a file other bytes. An image of "" is an item that is rejected, and keeps the pod of
// its name alone.
func (m *folderModel) write(name, text string) {
	if folderNames[name] {
		m.files[name] = &modelFile{text: text}
		return
	}
	before := m.files[name]
	if before == nil {
		before = &modelFile{}
	}
	now := &modelFile{text: text, pods: map[string]string{}, held: map[string]bool{}}
	items, good := m.texts[text]
	if !good {
		for pod, image := range before.pods {
			now.pods[pod], now.held[pod] = image, true
		}
	}
	for pod, image := range items {
		if image != "" {
			now.pods[pod] = image
		} else if last, ok := before.pods[pod]; ok {
			now.pods[pod], now.held[pod] = last, true
		}
		good = good && image != ""
	}
	now.good = before.good || good
	foreign := len(now.pods) == 0 && (name == "README.md" || text == "" || text == commented)
	now.hides = !now.good && !foreign
	m.files[name] = now
}

// safe reports whether no file may declare a pod that was never read.
func (m *folderModel) safe() bool {
	for _, file := range m.files {
		if file.hides {
			return false
		}
	}
	return true
}

// running is what must run now, by pod.
func (m *folderModel) running() map[string]string {
	declare := map[string][]string{}
	for _, held := range []bool{false, true} { // a good declaration beats a last known good one
		more := map[string][]string{}
		for name, file := range m.files {
			for pod := range file.pods {
				if file.held[pod] == held && declare[pod] == nil {
					more[pod] = append(more[pod], name)
				}
			}
		}
		maps.Copy(declare, more)
	}
	running, holders := map[string]string{}, map[string]string{}
	for pod, names := range declare {
		slices.SortFunc(names, func(a, b string) int {
			return strings.Compare(fmt.Sprintf("%3d%s", len(a), a), fmt.Sprintf("%3d%s", len(b), b))
		})
		now := names[0]
		if slices.Contains(names, m.holders[pod]) {
			now = m.holders[pod]
		}
		holders[pod], running[pod] = now, m.files[now].pods[pod]
	}
	m.holders = holders
	return running
}

// folderRun is a source that runs on a folder, and what its reader knows.
type folderRun struct {
	t      *testing.T
	r      *rig
	path   string
	model  folderModel
	random *rand.Rand
	marks  int
	told   map[string]string // what the reader knows to run, by pod
	uids   map[string]string // by pod and image: the same in each run of the source
	log    []string
}

// TestFolderAgainstAModel changes a real folder at random. After each change the pods that run are
// those that the model names, and no pod was restarted but for its own declaration.
func TestFolderAgainstAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(8) {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			f := &folderRun{
				t: t, path: folder(t), random: rand.New(rand.NewPCG(seed, run)), uids: map[string]string{},
				model: folderModel{files: map[string]*modelFile{}, texts: map[string]map[string]string{}},
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d, run %d:\n%s", seed, run, strings.Join(f.log, "\n"))
				}
			})
			f.restart()
			for range 30 {
				f.change()
				f.settle(f.model.running())
			}
		})
	}
}

func (f *folderRun) in(name string) string { return filepath.Join(f.path, name) }

// text is a manifest of up to two pods, one of which may be rejected, or no manifest at all.
func (f *folderRun) text() string {
	if f.random.IntN(8) == 0 {
		return []string{"", commented, "{", "kind: Pod"}[f.random.IntN(4)]
	}
	items, list := map[string]string{}, []string{}
	for _, pod := range f.random.Perm(3)[:f.random.IntN(3)] {
		image := []string{"v1", "v1", "v2", "v3", ""}[f.random.IntN(5)]
		name := string("pqr"[pod])
		items[name] = image
		list = append(list, item(name, image))
	}
	text := podList(list...)
	f.model.texts[text] = items
	return text
}

// change does one thing to the folder, and to the model.
func (f *folderRun) change() {
	names := slices.Sorted(maps.Keys(folderNames))
	name, other := names[f.random.IntN(len(names))], names[f.random.IntN(len(names))]
	if there := slices.Sorted(maps.Keys(f.model.files)); len(there) > 0 {
		name = there[f.random.IntN(len(there))] // most changes are of a file that is there
	}
	file := f.model.files[name]
	op := f.random.IntN(8)
	f.log = append(f.log, fmt.Sprintf("%d %s (%s)", op, name, other))
	switch {
	case op == 0:
		f.restart()
	case file == nil || op == 1: // write
		text := f.text()
		put(f.t, f.in(other), text)
		f.model.write(other, text)
	case op == 2: // edit in place
		text := f.text()
		overwrite(f.t, f.in(name), text)
		f.model.write(name, text)
	case op == 3: // truncate
		require.NoError(f.t, os.Truncate(f.in(name), 0))
		f.model.write(name, "")
	case op == 4: // remove
		require.NoError(f.t, os.Remove(f.in(name)))
		delete(f.model.files, name)
	case name == other:
	case op == 5: // copy
		put(f.t, f.in(other), file.text)
		f.model.write(other, file.text)
	case op == 6: // rename
		require.NoError(f.t, os.Rename(f.in(name), f.in(other)))
		f.model.write(other, file.text)
		delete(f.model.files, name)
	case op == 7: // copy and remove, in a hurry
		overwrite(f.t, f.in(other), file.text)
		require.NoError(f.t, os.Remove(f.in(name)))
		f.model.write(other, file.text)
		f.model.running()
		delete(f.model.files, name)
	}
}

// restart ends the source and starts another one, which knows nothing of what was.
func (f *folderRun) restart() {
	if f.r != nil {
		f.r.stop()
		for range f.r.Updates() {
		}
		<-f.r.done
	}
	for name, file := range f.model.files {
		delete(f.model.files, name)
		f.model.write(name, file.text)
	}
	f.model.holders = nil
	f.r = watching(f.t, f.path)
	u := f.r.update() // all of the first state is in one ADD
	require.Equal(f.t, sources.Add, u.Op)
	f.told = f.take(u)
	require.Equal(f.t, f.model.running(), f.told)
}

// take is the pods of an update, by name, without the mark.
func (f *folderRun) take(u sources.PodUpdate) map[string]string {
	pods := map[string]string{}
	for _, pod := range u.Pods {
		name, image := strings.TrimSuffix(pod.Name, "-node-1"), pod.Spec.Containers[0].Image
		if name == "mark" {
			continue
		}
		key := name + "=" + image
		if known := f.uids[key]; known != "" {
			require.Equal(f.t, known, string(pod.UID), key)
		}
		f.uids[key] = string(pod.UID)
		pods[name] = image
	}
	return pods
}

// settle waits until the folder has been read as it is now: a mark in it, read before all other
// files and written after them, has been told. What was told until then must be the difference to
// what runs now, and nothing else.
func (f *folderRun) settle(now map[string]string) {
	f.marks++
	mark := fmt.Sprint("m", f.marks)
	overwrite(f.t, f.in("0-mark.yaml"), manifestOf("mark", mark))
	removed, added := map[string]string{}, map[string]string{}
	for seen := false; !seen; {
		u := f.r.update()
		for _, pod := range u.Pods {
			seen = seen || u.Op == sources.Add && pod.Spec.Containers[0].Image == mark
		}
		into := added
		if u.Op == sources.Remove {
			into = removed
		} else {
			require.Equal(f.t, sources.Add, u.Op)
		}
		for pod, image := range f.take(u) {
			require.NotContains(f.t, into, pod, "told twice")
			into[pod] = image
		}
	}
	wantRemoved, wantAdded := maps.Clone(f.told), maps.Clone(now)
	same := func(pod, image string) bool { return f.told[pod] == image && now[pod] == image }
	maps.DeleteFunc(wantRemoved, same)
	maps.DeleteFunc(wantAdded, same)
	require.Equal(f.t, wantRemoved, removed, "stopped")
	require.Equal(f.t, wantAdded, added, "started")
	f.told = now
	safe := func() bool { return f.r.SafeToPrune(sources.FileSource) == f.model.safe() }
	require.Eventually(f.t, safe, patience, time.Millisecond, "safe to prune: %t", f.model.safe())
}
