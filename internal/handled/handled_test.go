package handled

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

func object(name, uid string, version int) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version)}
}

func due(f *File[string]) []string { return slices.Sorted(f.Due(false, nil)) }

func open(t *testing.T, path string) *File[string] {
	f, err := Open[string](path, owner, func(err error) { require.NoError(t, err) })
	require.NoError(t, err)
	return f
}

// crash is the end of a process.
func crash(t *testing.T, f *File[string]) {
	require.NoError(t, f.lock.Close())
}

var owner = Owner{Name: "mine", Version: "1", Feeds: []string{"pods"}}

// TestSteps: each step of a key, and what is due after a crash there.
func TestSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	version := Trace[string]{[]string{"a \"quoted\"\nkey"}, Of("pods", object("a", "1", 5)), "5"}
	key := version.Keys[0]
	var f *File[string]
	again := func() *File[string] {
		if f != nil {
			crash(t, f)
		}
		f = open(t, path)
		f.Change(0, Trace[string]{}, version)
		return f
	}
	f = again()
	require.Equal(t, []string{key}, due(f), "never seen")
	require.NoError(t, f.Begin(key))
	require.Equal(t, []string{key}, due(again()), "begun")
	f = again()
	require.NoError(t, f.Begin(key))
	f.Done(key)
	require.Empty(t, due(again()), "done")
	f = again()
	next := Trace[string]{version.Keys, Of("pods", object("a", "1", 6)), "6"}
	f.Change(0, version, next)
	require.Equal(t, []string{key}, due(f), "another version")
	crash(t, f)
	f = open(t, path)
	require.Equal(t, []string{key}, due(f), "gone")

	// An object that comes and goes leaves no trace in the present state, but its call does.
	other := Trace[string]{version.Keys, Of("pods", object("b", "2", 7)), "7"}
	f = again()
	f.Change(0, Trace[string]{}, other)
	require.NoError(t, f.Begin(key))
	f.Change(0, other, Trace[string]{})
	require.Equal(t, []string{key}, due(again()))

	// Nor does one that the call alone has seen.
	f = again()
	require.NoError(t, f.Begin(key))
	f.Change(0, Trace[string]{}, other)
	f.Change(0, other, Trace[string]{})
	f.Done(key)
	require.Equal(t, []string{key}, due(again()))

	crash(t, f)
	f = open(t, path)
	require.NoError(t, f.Begin(key))
	f.Done(key)
	require.NoError(t, f.Close())
	require.Empty(t, due(open(t, path)), "a key of no object is forgotten")
}

// reopen opens a file that a controller has left, and returns the keys that are due and what was
// said.
func reopen(t *testing.T, path string, owner Owner) (keys []string, warned string) {
	f, err := Open[string](path, owner, func(err error) { warned += err.Error() + "\n" })
	require.NoError(t, err)
	keys = due(f)
	require.NoError(t, f.Close())
	return keys, warned
}

// TestEveryKeyIsDue after another version, other feeds, and a day after the last full pass. Keys
// without objects are among them: what a failed call has left is not forgotten.
func TestEveryKeyIsDue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	f.Change(0, Trace[string]{}, Trace[string]{[]string{"a"}, Of("x", object("a", "1", 1)), "1"})
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	require.NoError(t, f.Begin("gone"))
	require.NoError(t, f.Close())
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	keys, warned := reopen(t, path, owner)
	require.Equal(t, []string{"a", "gone"}, keys, "a is gone now")
	require.Empty(t, warned)
	f = open(t, path)
	f.Change(0, Trace[string]{}, Trace[string]{[]string{"a"}, Of("x", object("a", "1", 1)), "1"})
	require.Equal(t, []string{"gone"}, due(f))
	require.NoError(t, f.Close())

	for want, change := range map[string]func(*Owner){
		"another version of the controller": func(o *Owner) { o.Version = "2" },
		"written by another version":        func(o *Owner) { o.Feeds = []string{"pods", "nodes"} },
	} {
		require.NoError(t, os.WriteFile(path, left, 0o600))
		other := owner
		change(&other)
		keys, warned := reopen(t, path, other)
		require.Equal(t, []string{"a", "gone"}, keys)
		require.Contains(t, warned, want)
		keys, warned = reopen(t, path, other)
		require.Equal(t, []string{"a", "gone"}, keys, "none of them was done since")
		require.Empty(t, warned)
	}

	passed := regexp.MustCompile(`"Passed":"[^"]*"`)
	yesterday := passed.ReplaceAll(left, fmt.Appendf(nil, `"Passed":%q`, time.Now().Add(-25*time.Hour).Format(time.RFC3339)))
	require.NoError(t, os.WriteFile(path, yesterday, 0o600))
	keys, warned = reopen(t, path, owner)
	require.Equal(t, []string{"a", "gone"}, keys)
	require.Contains(t, warned, "the last full pass is more than a day ago")
	_, warned = reopen(t, path, owner)
	require.Empty(t, warned)
}

// TestAFileHasOneController at a time, and is of one name.
func TestAFileHasOneController(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	_, err := Open[string](path, owner, func(error) {})
	require.EqualError(t, err, path+": it is in use: give each writer a path of its own")
	require.NoError(t, f.Close())
	other := owner
	other.Name = "other"
	_, err = Open[string](path, other, func(error) {})
	require.EqualError(t, err, path+` is of the controller "mine", and not of "other": give each a file of its own`)
	require.NoError(t, open(t, path).Close(), "it is intact, and free")
}

// TestARestoredHistory: the copy is at an older version than a state that is done, whose version
// may be given anew.
func TestARestoredHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var warned string
	f, err := Open[string](path, owner, func(err error) { warned += err.Error() })
	require.NoError(t, err)
	object := Trace[string]{[]string{"a"}, Of("x", object("a", "1", 1005)), "1005"}
	f.Change(0, Trace[string]{}, object)
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	again := func() {
		crash(t, f)
		f = open(t, path)
		f.warn = func(err error) { warned += err.Error() }
		f.Change(0, Trace[string]{}, object)
	}
	due := func(version store.Version) []string { return slices.Collect(f.Due(false, []store.Version{version})) }
	// The versions are in lines, and then in the first line.
	for _, replaced := range []bool{false, true} {
		again()
		require.Empty(t, due("1005"))
		require.Empty(t, due(""), "a union has no version")
		if replaced {
			require.NoError(t, f.replace())
		}
	}
	again()
	require.Equal(t, []string{"a"}, due("1003"))
	require.Contains(t, warned, "has seen version 1005 of pods, which is at 1003 now")
	again()
	require.Equal(t, []string{"a"}, due("1010"), "it is not done yet")
}

// TestDamage: of a file that is not whole, each key that can be read is due, and it says so.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	f.Change(0, Trace[string]{}, Trace[string]{[]string{"a"}, Of("x", object("a", "1", 1)), "1"})
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	require.NoError(t, f.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, body, _ := strings.Cut(string(text), "\n")
	for name, row := range map[string]struct {
		text, want string
		due        []string
	}{
		"empty":        {"", "it is empty", nil},
		"another file": {"apiVersion: v1\n", "it is not a file of handled keys", nil},
		"a first line": {strings.Replace(head, "{", "", 1) + "\n" + body, "it is not a file of handled keys", []string{"a"}},
		"no key":       {head + "\nbegun\n", "line 2 is damaged", nil},
		"a state":      {head + "\n" + strings.Replace(body, "begun", "began", 1), "line 2 is damaged", []string{"a"}},
		"a short one":  {head + "\n00ff \"a\"\n" + body, "line 2 is damaged", []string{"a"}},
		"zeros":        {string(text) + "\x00\x00\x00\n", "line 4 is damaged", []string{"a"}},
		"versions":     {head + "\n" + strings.Repeat("0", 32) + ",\"1\",\"2\" \"a\"\n", "line 2 is damaged", nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
			keys, warned := reopen(t, path, owner)
			require.Equal(t, path+": "+row.want+"\n", warned)
			require.Equal(t, row.due, keys)
			keys, warned = reopen(t, path, owner)
			require.Equal(t, row.due, keys)
			require.Empty(t, warned, "it has been replaced")
		})
	}
}

// TestAFileThatCannotBeWritten is removed, since it would soon be too old; if it cannot be removed
// either, no call may begin.
func TestAFileThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var warned []string
	f, err := Open[string](path, owner, func(err error) { warned = append(warned, err.Error()) })
	require.NoError(t, err)
	version := Of("pods", object("a", "1", 1))
	f.Change(0, Trace[string]{}, Trace[string]{[]string{"a"}, version, "1"})
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	require.NoError(t, f.out.Close()) // as a full disk
	require.NoError(t, f.Begin("a"))
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], path+" cannot be written, and is removed until it can")
	require.NoFileExists(t, path)
	f.Done("a")
	require.NoFileExists(t, path, "it is left alone for a while")
	f.tried = f.tried.Add(-again)
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	require.NoError(t, f.Close())
	f = open(t, path)
	f.Change(0, Trace[string]{}, Trace[string]{[]string{"a"}, version, "1"})
	require.Empty(t, due(f), "it is whole again")

	f.warn = func(error) {}
	f.path = filepath.Join(path, "below a file")
	require.NoError(t, f.out.Close())
	require.ErrorContains(t, f.Begin("a"), "can neither be written nor removed")
	require.Error(t, f.Begin("a"), "still not")
}

// TestCrashes: random steps beside a model. At a random step the process is killed, while a line is
// half written or not, or beside a new file that is half written. The file then has each key as the
// model does, or, for the step under way, as before it. TRIBUTARY_SEEDS=n runs n seeds.
func TestCrashes(t *testing.T) {
	seeds := 200
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SEEDS")); err == nil {
		seeds = n
	}
	folder := t.TempDir()
	for range seeds {
		seed := rand.Uint64()
		crashAnywhere(t, filepath.Join(folder, "file"), rand.New(rand.NewPCG(seed, 0)), fmt.Sprintf("seed %d", seed))
	}
}

func crashAnywhere(t *testing.T, path string, random *rand.Rand, seed string) {
	f := open(t, path)
	f.slack = random.IntN(5) // replaced often
	for range random.IntN(30) {
		key := fmt.Sprint("key-", random.IntN(4))
		e := entry{done: random.IntN(2) == 0}
		if e.done {
			e.state[0] = byte(random.IntN(3))
		}
		require.NoError(t, f.step(key, e, []store.Version{"7"}), seed)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	after := f.entries
	require.NoError(t, f.out.Close())
	crash(t, f)
	torn := random.IntN(2) == 0
	if lines := strings.SplitAfter(string(text), "\n"); torn && len(lines) > 2 {
		last := len(lines[len(lines)-2])
		text = text[:len(text)-1-random.IntN(last)]
		require.NoError(t, os.WriteFile(path, text, 0o600))
		require.NoError(t, os.WriteFile(path+".new", text[:random.IntN(len(text))], 0o600))
	}
	f = open(t, path)
	differ := 0
	for i := range 4 {
		key := fmt.Sprint("key-", i)
		got, there := f.entries[key]
		want, wanted := after[key]
		if there == wanted && got == want {
			continue
		}
		require.True(t, torn, "%s: %s", seed, key)
		differ++
	}
	require.LessOrEqual(t, differ, 1, "%s: a torn line is one step", seed)
	require.NoError(t, f.Close())
}
