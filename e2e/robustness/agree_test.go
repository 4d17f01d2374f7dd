package robustness_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/internal/histories"
)

// TestVerdictsAgree: on random histories, whole and damaged in every way, histories.Check says what
// etcd's validators say, and names what they name.
func TestVerdictsAgree(t *testing.T) {
	const runs = 3000
	seed := seedOf(t)
	quiet(t)
	named := map[string]int{}
	for n := range uint64(runs) {
		h := newInvention(rand.New(rand.NewPCG(seed, n)))
		theirs := h.run.JudgeReader(h.run.Readers[0], judging)
		ours := h.run.Check(h.run.Readers[0])
		name := nameOf(theirs)
		named[name]++
		if h.damage == "" {
			require.NoError(t, theirs, "seed %d, history %d", seed, n)
		}
		if theirs == nil || ours == nil {
			require.Equal(t, theirs, ours, "seed %d, history %d, %s: %+v\n%+v", seed, n, h.damage, h.run.Readers[0].Streams, h.run.Persisted)
			continue
		}
		require.True(t, slices.ContainsFunc(violations(ours), func(p histories.Property) bool { return slices.Contains(same[name], p) }),
			"seed %d, history %d, %s:\ntheirs: %v\nours: %v", seed, n, h.damage, theirs, ours)
	}
	for name := range same {
		if name != goneBack { // that takes two rare damages
			require.Positive(t, named[name], "no history breaks %s: %v", name, named)
		}
	}
	require.Greater(t, named[""], runs/10)
	t.Logf("%d histories: %v", runs, named)
}

// goneBack is what our mapping says of a state older than what the reader was told: etcd's model
// lets a state be of any time.
const goneBack = "is older than"

// same are our names for what etcd's validators name first. A watch that goes on from too late a
// version is not resumable to us; to them it is a bookmark that the reader should not have
// believed.
var same = map[string][]histories.Property{
	"broke Ordered":      {histories.Ordered},
	"broke Unique":       {histories.Unique},
	"broke Bookmarkable": {histories.Bookmarkable, histories.Resumable},
	"broke Resumable":    {histories.Resumable},
	"broke Reliable":     {histories.Reliable, histories.Resumable},
	"IsCreate":           {histories.Reliable, histories.Resumable},
	"linearization":      {histories.Atomic},
	"never was":          {histories.Atomic},
	goneBack:             {histories.Ordered},
}

func nameOf(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, robustness.ErrNeverWas) {
		return "never was"
	}
	for name := range same {
		if strings.Contains(err.Error(), name) {
			return name
		}
	}
	return err.Error()
}

func violations(err error) (all []histories.Property) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, one := range joined.Unwrap() {
		var v *histories.Violation
		if errors.As(one, &v) {
			all = append(all, v.Property)
		}
	}
	return all
}

// invention is a history that nobody was told.
type invention struct {
	random *rand.Rand
	run    *robustness.Run
	damage string // empty: none
}

func newInvention(random *rand.Rand) *invention {
	h := &invention{random: random, run: &robustness.Run{}}
	h.write()
	reader := robustness.Reader{History: histories.History{Reader: "reader", Streams: h.streams()}, Contents: map[string]robustness.Content{}}
	for _, p := range h.run.Persisted {
		reader.Contents[p.ResourceVersion] = p.Content
	}
	for range random.IntN(3) {
		h.harm(&reader)
	}
	h.run.Readers = []robustness.Reader{reader}
	return h
}

// write makes up what was written, in versions with gaps.
func (h *invention) write() {
	held := map[string]int64{}
	version := 1
	for n := range 10 + h.random.IntN(20) {
		version += 1 + h.random.IntN(3)
		key := fmt.Sprint("default/k", h.random.IntN(4))
		p := robustness.Persisted{Change: histories.Change{Type: watch.Modified, Key: key, ResourceVersion: strconv.Itoa(version)}}
		switch count := held[key]; {
		case count == 0:
			p.Type = watch.Added
		case h.random.IntN(3) == 0:
			p.Type = watch.Deleted
		}
		if p.Type == watch.Deleted {
			delete(held, key)
		} else {
			held[key]++
			p.Content = robustness.Content{Value: fmt.Sprint("v", n), Count: held[key]}
		}
		h.run.Persisted = append(h.run.Persisted, p)
	}
}

func (h *invention) version(n int) uint64 {
	if n == 0 {
		return 1
	}
	return number(h.run.Persisted[n-1].ResourceVersion)
}

// streams make up what a reader is rightly told: a state and what follows, some of it again after a
// watch was resumed, another state later. A handler has nothing but states without a version and
// what follows.
func (h *invention) streams() (all []histories.Stream) {
	handler := h.random.IntN(3) == 0
	n, last := h.random.IntN(len(h.run.Persisted)/2), len(h.run.Persisted)
	for told := n; n < last; told = max(told, n) {
		var s histories.Stream
		switch {
		case handler || len(all) == 0 || h.random.IntN(3) == 0: // a relist
			if len(all) > 0 {
				n = max(told, n+h.random.IntN(min(4, last-n)))
			}
			s.Listed = &histories.State{ResourceVersion: fmt.Sprint(h.version(n)), Objects: map[string]string{}}
			for _, p := range h.run.Persisted[:n] {
				if delete(s.Listed.Objects, p.Key); p.Type != watch.Deleted {
					s.Listed.Objects[p.Key] = p.ResourceVersion
				}
			}
			if handler {
				s.Listed.ResourceVersion = ""
			}
		default:
			n = max(0, n-h.random.IntN(2))
			s.After = fmt.Sprint(h.version(n))
		}
		for range h.random.IntN(8) {
			if n == last {
				break
			}
			s.Told = append(s.Told, h.run.Persisted[n].Change)
			n++
			if h.random.IntN(3) == 0 {
				s.Told = append(s.Told, histories.Change{Type: watch.Bookmark, ResourceVersion: fmt.Sprint(h.version(n))})
			}
		}
		all = append(all, s)
		if h.random.IntN(6) == 0 {
			break
		}
	}
	return all
}

// harm damages a stream at random. What it does may change nothing.
func (h *invention) harm(r *robustness.Reader) {
	i := h.random.IntN(len(r.Streams))
	s := &r.Streams[i]
	n := len(s.Told)
	kind := h.random.IntN(9)
	if kind < 7 && n < 2 {
		return
	}
	at := 0
	if n > 1 {
		at = h.random.IntN(n - 1)
	}
	switch kind {
	case 0:
		s.Told = slices.Delete(s.Told, at, at+1)
	case 1:
		s.Told = slices.Insert(s.Told, at+1, s.Told[at])
	case 2:
		s.Told[at], s.Told[at+1] = s.Told[at+1], s.Told[at]
	case 3: // a bookmark that is early, late or right
		mark := histories.Change{Type: watch.Bookmark, ResourceVersion: s.Told[h.random.IntN(n)].ResourceVersion}
		s.Told = slices.Insert(s.Told, at, mark)
	case 4:
		if s.Told[at].Type != watch.Bookmark {
			s.Told[at].Type = watch.Modified
		}
	case 5:
		if s.Told[at].Type != watch.Bookmark {
			s.Told[at].Key = "default/k0"
		}
	case 6:
		s.Told = s.Told[1:]
	case 7:
		if s.Listed != nil && len(s.Listed.Objects) > 0 {
			key := slices.Sorted(maps.Keys(s.Listed.Objects))[0]
			delete(s.Listed.Objects, key)
		}
	case 8:
		if s.Listed == nil {
			s.After = fmt.Sprint(h.version(min(len(h.run.Persisted), 1+h.random.IntN(len(h.run.Persisted)))))
		}
	}
	h.damage += fmt.Sprintf("kind %d in stream %d at %d; ", kind, i, at)
}

// TestSilentRelist: a relist that steps over a creation and its deletion leaves a handler with what
// it had, so that the handler is told nothing. Both judges let that be, but not a store that lacks
// the two.
func TestSilentRelist(t *testing.T) {
	quiet(t)
	change := func(kind watch.EventType, key, version string) histories.Change {
		return histories.Change{Type: kind, Key: key, ResourceVersion: version}
	}
	first, last := change(watch.Added, "default/k0", "3"), change(watch.Modified, "default/k0", "9")
	contents := map[string]robustness.Content{"3": {Value: "a", Count: 1}, "5": {Value: "b", Count: 1}, "9": {Value: "c", Count: 2}}
	run := &robustness.Run{}
	for _, c := range []histories.Change{first, change(watch.Added, "default/k1", "5"), change(watch.Deleted, "default/k1", "6"), last} {
		run.Persisted = append(run.Persisted, robustness.Persisted{Change: c, Content: contents[c.ResourceVersion]})
	}
	reader := func(version string) robustness.Reader {
		return robustness.Reader{Contents: contents, History: histories.History{Reader: "reader", Streams: []histories.Stream{
			{Listed: &histories.State{ResourceVersion: version}, Told: []histories.Change{first, last}},
		}}}
	}
	require.NoError(t, run.JudgeReader(reader(""), judging))
	require.NoError(t, run.Check(reader("")))
	marked := reader("")
	marked.Streams[0].Told = []histories.Change{first, change(watch.Bookmark, "", "7"), last, change(watch.Bookmark, "", "9")}
	require.NoError(t, run.JudgeReader(marked, judging))
	require.NoError(t, run.Check(marked))
	require.ErrorContains(t, run.JudgeReader(reader("1"), judging), "broke Reliable")
	require.ErrorContains(t, run.Check(reader("1")), "broke reliable")
}
