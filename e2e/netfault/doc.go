// Package netfault is a TCP proxy that does to connections what networks do: it delays, throttles,
// cuts in the middle of a frame, resets, pauses, and swallows what is sent without a word.
//
//	proxy := netfault.Listen(t, server.Address())
//	// … a client connects to proxy.Address() …
//	proxy.Blackhole()
//
// Faults are switched on and off at any time, from any goroutine, and act on the connections that
// are open. The proxy and all its connections end with the test.
package netfault
