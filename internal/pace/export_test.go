package pace

// Known is the number of servers of which a pace is held.
func Known() int {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	return len(servers.of)
}
