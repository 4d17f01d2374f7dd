package watchcache

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// lastBookmark is how long before the timeout a bookmark is sent, as by the API server.
const lastBookmark = 2 * time.Second

// schedule sets the deadline and the first bookmark. The first call for events sets the alarm.
func (w *Watcher[T]) schedule(timeout *int64) {
	now := time.Now()
	if timeout != nil && *timeout > 0 {
		w.deadline = now.Add(time.Duration(*timeout) * time.Second)
	}
	w.scheduleBookmark(now)
	w.clearAlarm()
}

// scheduleBookmark sets when the next bookmark is due: after the interval, or shortly before the
// deadline.
func (w *Watcher[T]) scheduleBookmark(now time.Time) {
	w.mark = now.Add(w.cache.config.bookmarkInterval)
	last := w.deadline.Add(-lastBookmark)
	if !w.deadline.IsZero() && now.Before(last) && last.Before(w.mark) {
		w.mark = last
	}
}

// overdue reports whether the deadline has passed.
func (w *Watcher[T]) overdue(now time.Time) bool {
	return !w.deadline.IsZero() && !now.Before(w.deadline)
}

// answerCall adds a bookmark to events, if one is due, and sets the next alarm.
func (w *Watcher[T]) answerCall(complete uint64) {
	now := time.Now()
	w.alarm.Store(false)
	if w.bookmarkDue(now) {
		w.scheduleBookmark(now)
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
	return w.bookmarks && (wanted || !now.Before(w.mark))
}

func (w *Watcher[T]) addBookmark(version uint64, initialEventsEnd bool) {
	w.next().Event = listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: formatVersion(version), InitialEventsEnd: initialEventsEnd,
	}
}

// setAlarm has the next bookmark, or the deadline, wake the watcher.
func (w *Watcher[T]) setAlarm(now time.Time) {
	until := w.deadline
	if w.bookmarks && (until.IsZero() || w.mark.Before(until)) {
		until = w.mark
	}
	switch {
	case until.IsZero():
	case w.timer == nil:
		w.timer = time.AfterFunc(until.Sub(now), func() {
			w.alarm.Store(true)
			w.unpark()
		})
	default:
		w.timer.Reset(until.Sub(now))
	}
}

// clearAlarm stops the timer. The next look sets it again.
func (w *Watcher[T]) clearAlarm() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.alarm.Store(w.bookmarks || !w.deadline.IsZero())
}
