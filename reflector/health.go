package reflector

import (
	"errors"
	"time"

	"github.com/tributary-go/tributary/internal/pace"
)

// watchHealth is the record of the watches: whether they work on this server, or lists must stand
// in for them.
type watchHealth struct {
	bookmarks bool // this server sends them, so that a silent watch means something
	silent    int  // silent watches in a row
	deaf      int  // watches in a row that were answered with an error, and brought nothing
	lists     int  // lists that completed since a watch last showed life
	// failed is the class of the last watch list that failed, if no watch has shown life since.
	failed Class
	polls  int       // lists in a row that stood in for watches
	pollAt time.Time // the next of them is due then
}

const (
	// Silent watches, on a server that sends bookmarks, before a relist.
	silentAttempts = 2
	// The same on a server that was not seen to send any: there, silence is the rule.
	silentLimit = 10
	// Watches that fail, when lists may not, before lists stand in for them.
	deafAttempts = 8
	deafRefusals = 2                // the same when they are refused
	shortWatch   = time.Second      // a watch that ends sooner, without an event, has failed
	steadyWatch  = 10 * time.Second // a watch that lasts this long shows life without an event
)

// ended takes in the end of a watch, and returns its class: one that the server ended well, but at
// once and without an event, is Short.
func (w *watchHealth) ended(class Class, o outcome) Class {
	if class == OK && o.err == nil && o.contacts == 0 && o.lived < shortWatch && !o.due {
		class = Short
	}
	w.bookmarked(o.bookmarks)
	if o.contacts > 0 {
		w.silent = 0
	}
	if class == Silent {
		w.silent++
	}
	return class
}

// showsLife reports whether a watch is a sign that watches work.
func showsLife(class Class, o outcome) bool {
	return o.contacts > 0 || o.lived >= steadyWatch && class != Silent
}

// lives takes in a sign that watches work.
func (w *watchHealth) lives() { w.lists, w.deaf, w.polls, w.failed = 0, 0, 0, "" }

func (w *watchHealth) bookmarked(n int) { w.bookmarks = w.bookmarks || n > 0 }

// listed takes in a complete list. A watch list is a watch that works, and ends with a bookmark.
func (w *watchHealth) listed(kind stepKind) {
	w.silent = 0
	if kind == doWatchList {
		w.bookmarks, w.deaf, w.polls, w.failed = true, 0, 0, ""
	}
}

// interrupted reports whether a watch that was taken in has ended in a way that may hide a restart
// of the server, and not by a doubt of ours. Of silent watches in a row it is the first: on a
// server without bookmarks they are the rule.
func (w *watchHealth) interrupted(class Class, o outcome) bool {
	return lostBy(class) == "" && !errors.Is(o.err, errDoubted) && !(class == OK && o.due) && !(class == Silent && w.silent > 1)
}

// tooSilent reports whether silence has lasted for so many watches that a list must look.
func (w *watchHealth) tooSilent() bool {
	return w.silent >= silentAttempts && w.bookmarks || w.silent >= silentLimit
}

// refused takes in a watch that was answered with an error, and reports whether lists are to stand
// in for watches. They do so at once if the watch list has just failed in the same way, and the
// LIST has not.
func (w *watchHealth) refused(class Class) bool {
	enough := deafAttempts
	if class == Forbidden {
		enough = deafRefusals
	}
	w.deaf++
	return w.deaf >= enough || w.failed == class
}

// pollLater sets the time of the next list that stands in for a watch.
func (w *watchHealth) pollLater(at time.Time, b *pace.Asker) {
	w.pollAt = at.Add(b.Within(b.Doubled(w.polls)))
	w.polls++
}
