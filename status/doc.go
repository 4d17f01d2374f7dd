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
//  1. The worst copy comes first. Each state is explained in docs/freshness.md, and linked.
//  2. The page shows 1,000 copies and 20 readers of each, and says how many it leaves out. 100
//     viewers follow it at a time; another one gets 503. All viewers share one look a second, and
//     each is sent the rows that have changed.
//  3. The changes of objects are told by name while there is a viewer, at most 200 a second;
//     without one nothing is asked for them, and nothing is kept.
//  4. The page loads nothing from elsewhere: its Content-Security-Policy permits its own script and
//     style, by their hashes, and requests to its own server.
package status
