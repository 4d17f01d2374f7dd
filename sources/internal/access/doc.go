// Package access reads files and URLs: settings, bounded reads, file events, requests, and the
// report of their health. It knows no objects. The package static reads with it in the right way,
// and sources in the kubelet's way.
package access
