package pace

import (
	"runtime"
	"sync"
	"weak"
)

// servers are the paces of the process. They belong to no client: clients of one server are often
// made from one configuration, and know nothing of each other.
var servers = struct {
	mu sync.Mutex // guards of
	of map[any]weak.Pointer[Server]
}{of: map[any]weak.Pointer[Server]{}}

// ServerOf returns the pace of the server that key names, the same one as long as a caller holds
// it. key must be comparable.
func ServerOf(key any) *Server {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if s := servers.of[key].Value(); s != nil {
		return s
	}
	s := &Server{}
	servers.of[key] = weak.Make(s)
	runtime.AddCleanup(s, forget, key)
	return s
}

// forget drops the entry of a server that is not held any more, unless key has a new one.
func forget(key any) {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if servers.of[key].Value() == nil {
		delete(servers.of, key)
	}
}
