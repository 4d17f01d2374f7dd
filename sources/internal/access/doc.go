// Package access is how files and URLs are looked at: settings, bounded reads, file events, requests, and the report of how
// it goes. It knows no objects. The package static reads with it as it should be, and sources as the kubelet does.
package access
