package handled

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(name, uid string, version int) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version)}
}

func due(f *File[string]) []string { return slices.Sorted(f.Due()) }

func open(t *testing.T, path string) *File[string] {
	f, err := Open[string](path, "1", func(err error) { require.NoError(t, err) })
	require.NoError(t, err)
	return f
}

// TestSteps: each step of a key, and what is due after a crash there.
func TestSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	version := Trace[string]{[]string{"a \"quoted\"\nkey"}, Of("pods", object("a", "1", 5))}
	key := version.Keys[0]
	again := func() *File[string] {
		f := open(t, path)
		f.Change(Trace[string]{}, version)
		return f
	}
	f := again()
	require.Equal(t, []string{key}, due(f), "never seen")
	require.NoError(t, f.Begin(key))
	require.Equal(t, []string{key}, due(again()), "begun")
	f = again()
	require.NoError(t, f.Begin(key))
	f.Done(key)
	require.Empty(t, due(again()), "done")
	f = again()
	next := Trace[string]{version.Keys, Of("pods", object("a", "1", 6))}
	f.Change(version, next)
	require.Equal(t, []string{key}, due(f), "another version")
	require.Equal(t, []string{key}, due(open(t, path)), "gone")

	// An object that comes and goes leaves no trace in the present state, but its call does.
	other := Trace[string]{version.Keys, Of("pods", object("b", "2", 7))}
	f = again()
	f.Change(Trace[string]{}, other)
	require.NoError(t, f.Begin(key))
	f.Change(other, Trace[string]{})
	require.Equal(t, []string{key}, due(again()))

	// Nor does one that the call alone has seen.
	f = again()
	require.NoError(t, f.Begin(key))
	f.Change(Trace[string]{}, other)
	f.Change(other, Trace[string]{})
	f.Done(key)
	require.Equal(t, []string{key}, due(again()))

	f = open(t, path)
	require.NoError(t, f.Begin(key))
	f.Done(key)
	require.NoError(t, f.Close())
	require.Empty(t, due(open(t, path)), "a key of no object is forgotten")
}

// TestDamage: every file that is not whole counts as empty, and says so.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	f.Change(Trace[string]{}, Trace[string]{[]string{"a"}, Of("x", object("a", "1", 1))})
	require.NoError(t, f.Begin("a"))
	f.Done("a")
	require.NoError(t, f.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	head, body, _ := strings.Cut(string(text), "\n")
	for name, row := range map[string]struct{ text, want string }{
		"empty":        {"", "it is empty"},
		"another file": {"apiVersion: v1\n", "it is not a file of handled keys"},
		"a version":    {strings.Replace(head, `"1"`, `"2"`, 1) + "\n" + body, "it was written by another version"},
		"no key":       {head + "\nbegun\n", "line 2 is damaged"},
		"a state":      {head + "\n" + strings.Replace(body, "begun", "began", 1), "line 2 is damaged"},
		"a short one":  {head + "\n00ff \"a\"\n", "line 2 is damaged"},
		"zeros":        {string(text) + "\x00\x00\x00\n", "line 4 is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
			var warned []string
			f, err := Open[string](path, "1", func(err error) { warned = append(warned, err.Error()) })
			require.NoError(t, err)
			require.Len(t, warned, 1)
			require.Contains(t, warned[0], path+": "+row.want)
			require.Empty(t, due(f))
			require.NoError(t, f.Close())
			require.Empty(t, due(open(t, path)), "it has been replaced")
		})
	}
}

// TestAFileThatCannotBeWritten is removed, since it would soon be too old; if it cannot be removed
// either, no call may begin.
func TestAFileThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var warned []string
	f, err := Open[string](path, "1", func(err error) { warned = append(warned, err.Error()) })
	require.NoError(t, err)
	version := Of("pods", object("a", "1", 1))
	f.Change(Trace[string]{}, Trace[string]{[]string{"a"}, version})
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
	f.Change(Trace[string]{}, Trace[string]{[]string{"a"}, version})
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
		crash(t, filepath.Join(folder, "file"), rand.New(rand.NewPCG(seed, 0)), fmt.Sprintf("seed %d", seed))
	}
}

func crash(t *testing.T, path string, random *rand.Rand, seed string) {
	f := open(t, path)
	f.slack = random.IntN(5) // replaced often
	for range random.IntN(30) {
		key := fmt.Sprint("key-", random.IntN(4))
		e := entry{done: random.IntN(2) == 0}
		if e.done {
			e.state[0] = byte(random.IntN(3))
		}
		require.NoError(t, f.step(key, e), seed)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	after := f.entries
	require.NoError(t, f.out.Close())
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
