package watchcache

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// lastBookmark is how long before the timeout a bookmark is sent, as by the API server.
const lastBookmark = 2 * time.Second

// times are when a watcher has to look though there is no change.
type times struct {
	bookmark  time.Time   // when the next one is due, if bookmarks are wanted
	deadline  time.Time   // zero: none
	bookmarks bool        // are wanted
	timer     *time.Timer // nil until the first alarm is set
}

// schedule sets when the next bookmark is due: after the interval, or shortly before the deadline.
func (t *times) schedule(now time.Time, interval time.Duration) {
	t.bookmark = now.Add(interval)
	last := t.deadline.Add(-lastBookmark)
	if !t.deadline.IsZero() && now.Before(last) && last.Before(t.bookmark) {
		t.bookmark = last
	}
}

// overdue reports whether the deadline has passed.
func (t *times) overdue(now time.Time) bool {
	return !t.deadline.IsZero() && !now.Before(t.deadline)
}

// first is the time of the next bookmark or of the deadline; zero if there is neither.
func (t *times) first() time.Time {
	if t.bookmarks && (t.deadline.IsZero() || t.bookmark.Before(t.deadline)) {
		return t.bookmark
	}
	return t.deadline
}

// answerCall adds a bookmark to events, if one is due, and sets the next alarm.
func (w *Watcher[T]) answerCall(complete uint64) {
	now := time.Now()
	w.alarm.Store(false)
	if w.bookmarkDue(now) {
		w.times.schedule(now, w.cache.config.bookmarkInterval)
		// There is nothing to say before a version of the future has come. A version known by
		// comparison has come: the events that the copy still waits for are not for this watcher.
		if complete >= w.after || w.cache.shows(w.after) {
			w.addBookmark(max(complete, w.after), false)
		}
	}
	w.setAlarm(now)
}

// bookmarkDue reports whether the time of a bookmark has come, or [Cache.SendBookmarks] wants one.
func (w *Watcher[T]) bookmarkDue(now time.Time) bool {
	asked := w.cache.asked.Load()
	wanted := asked != w.asked
	w.asked = asked
	return w.times.bookmarks && (wanted || !now.Before(w.times.bookmark))
}

func (w *Watcher[T]) addBookmark(version uint64, initialEventsEnd bool) {
	w.batch.next(&w.cache.buffers).Event = listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: formatVersion(version), InitialEventsEnd: initialEventsEnd,
	}
}

// setAlarm has the next bookmark, or the deadline, wake the watcher.
func (w *Watcher[T]) setAlarm(now time.Time) {
	t := &w.times
	switch until := t.first(); {
	case until.IsZero():
	case t.timer == nil:
		t.timer = time.AfterFunc(until.Sub(now), func() {
			w.alarm.Store(true)
			w.unpark()
		})
	default:
		t.timer.Reset(until.Sub(now))
	}
}

// clearAlarm stops the timer. The next look sets it again.
func (w *Watcher[T]) clearAlarm() {
	if w.times.timer != nil {
		w.times.timer.Stop()
		w.times.timer = nil
	}
	w.alarm.Store(!w.times.first().IsZero())
}
