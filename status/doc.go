// Package status serves a page for people. It shows which copy is stale, since when and why, the
// remedy, the handlers and watchers that wait behind the copy, and its cost.
//
//	page := new(status.Handler)
//	defer page.Track("pods", pods)() // or a set, sources, references by name, a watch cache
//	http.Handle("GET /statusz", page)
//	ended := make(chan error, 1)
//	go func() { ended <- page.Run(ctx) }() // for the curve of the last hour
//
// A browser gets HTML that is kept current by server-sent events; curl gets one screen of text; a
// request that accepts application/json gets a [Document]. The page binds no address, and is
// read-only unless [Handler].Verify is set. It shows names, numbers and errors, and no content of
// objects unless [Handler].Differences is set. Serve it where your metrics are: a reader learns the
// names of your copies and of the objects that change, and the addresses in their errors.
//
// # Guarantees
//
//  1. The worst copy comes first, and is open in the panel with its cause, the advice and, for a
//     refused right, the kubectl command. Synced copies are folded into a number if they are more
//     than 20. Each state is explained in docs/freshness.md, and linked.
//  2. The query chooses: q=WORD filters by name, kind and class, state= by state, rows= says how
//     many rows are sent, and copy=NAME opens a copy, in HTML and in text. A browser keeps the same
//     behind the #, so that #copy=NAME is a link to a copy.
//  3. The page shows 1,000 copies and 20 readers of each, and says how many it leaves out. 100
//     viewers follow it at a time; another one gets 503. All viewers share one look a second, and
//     each is sent the rows of its choice that have changed, 100 at most. A row of which only
//     numbers have changed is sent every ten seconds. So 1,000 busy copies cost a viewer less than
//     200 kB in its first ten seconds.
//  4. The changes of objects are told by name while there is a viewer, at most 30 a second;
//     without one nothing is asked for them, and nothing is kept.
//  5. The page loads nothing from elsewhere: its Content-Security-Policy permits its own script and
//     style, by their hashes, and requests to its own server. Without scripts it shows the same,
//     and stands still.
//  6. Names and errors are shown with control characters, and those that turn a text's direction
//     such as U+202E, as escapes. A command quotes each word that a server has said.
//
// How to find a stale copy with it: docs/howto/stale-copy.md.
package status
