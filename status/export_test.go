package status

import "time"

// Quickly has a page look every ten milliseconds, so that a test with real servers need not wait.
func Quickly(page *Handler) *Handler {
	page.pace = 10 * time.Millisecond
	return page
}
