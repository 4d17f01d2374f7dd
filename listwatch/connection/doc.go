// Package connection keeps the watches of a program apart from its writes and large lists:
//
//	watches, err := kubernetes.NewForConfig(connection.Separate(config))
//	others, err := kubernetes.NewForConfig(config)
//
// With controller-runtime, the cache gets the client:
//
//	client, err := rest.HTTPClientFor(connection.Separate(config))
//	ctrl.Options{Cache: cache.Options{HTTPClient: client}, NewCache: controllerruntime.NewCache}
//
// client-go sends all requests of equal configs over one HTTP/2 connection. While request bodies
// fill it, no goroutine can read a watch: each must confirm the bytes that it reads, over the same
// connection. While answers to lists fill it, events queue behind them.
//
// Beside four writers of 1 MB each, over a link of 20 Mbit/s and 10 ms, the median event came 431
// ms late and the worst of 200 two seconds; with Separate 12 ms and 16 ms. Beside 64 writers of 16
// KB over 100 Mbit/s these were 38 ms and 50 ms, and 11 ms and 19 ms. A program that does not fill
// its link gains nothing worth a connection (docs/design/listwatch.md has the table).
//
// # Costs and limits
//
//   - The server has one more connection to keep.
//   - Credentials, their plugins, proxy and wrapped transports are those of the config. A clientset
//     has a rate limiter of its own, as ever, unless the config has one.
//   - Lists of the watches' own clients, a relist too, use the connection of the watches.
//   - With a Dial or a Proxy in the config, client-go gives each client a connection of its own
//     anyway. With HTTP/1.1, each request in flight has one.
//   - A Transport in the config stays the transport of all clients: give the copy another.
package connection
