// Package status is a page to look at: which copy is stale, since when, why, and what to do; who
// waits behind it; what it costs.
//
//	page := new(status.Handler)
//	defer page.Track("pods", pods)() // reflectors, informers, sets, unions, sources
//	http.Handle("GET /statusz", page)
//	go page.Run(ctx) // for the curve of the last hour
//
// A browser gets HTML that is kept current by server-sent events; curl gets one screen of text; a
// request that accepts application/json gets a [Document]. The page binds no address and changes
// nothing. It shows names, numbers and errors, and no object. Serve it where your metrics are: who
// reads it learns the names of your copies, and the addresses in their errors.
//
// # Guarantees
//
//  1. The worst copy comes first. Each state is explained in docs/freshness.md, and linked.
//  2. The page shows 1,000 copies and 20 readers of each, and says how many it leaves out. 100
//     viewers follow it at a time; another one gets 503. All viewers share one look a second.
//  3. The page loads nothing from elsewhere: its Content-Security-Policy permits its own script and
//     style, by their hashes, and nothing else.
package status
