package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is one thing to do.
type step struct {
	kind      stepKind
	options   metav1.ListOptions // of a request
	wait      time.Duration
	told      time.Duration // of a wait: the server asked for it
	cause     Class         // of a list: why it is made; OK for the first
	poll      bool          // of a list: it stands in for a watch
	cached    bool          // of a list: its state may be older than the truth
	behind    bool          // of a list: a version older than the one held is taken
	confirmed bool          // of a list: fewer than half of the objects held are taken
	err       error         // to stop with
}

type stepKind int

const (
	doWatchList stepKind = iota
	doList
	doWatch
	doWait
	doStop
)

// outcome is how a request went.
type outcome struct {
	err      error
	complete bool // a list: the store took the state
	// another: the list is of another history than the content was, so that what is known of
	// versions before it says nothing about those after it.
	another bool
	// version is the newest with its effects in the store afterwards; empty: no news.
	version   string
	contacts  int           // events and bookmarks of a watch
	bookmarks int           // bookmarks alone
	items     int           // of a list
	skipped   int           // of a list: objects that could not be decoded
	lived     time.Duration // from the request to its end
	sent      time.Duration // of a watch: from its sending to its end
	due       bool          // a watch: it lasted as long as the server was asked for, about
	at        time.Time     // when it ended
}
