package pace

// Known is the number of servers of which a pace is held.
func Known() int { return len(servers.Keys()) }
