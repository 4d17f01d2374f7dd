package pace

import "github.com/tributary-go/tributary/internal/weakly"

// servers are the paces of the process. They belong to no client: clients of one server are often
// made from one configuration, and know nothing of each other.
var servers weakly.Map[any, Server]

// ServerOf returns the pace of the server that key names, the same one as long as a caller holds
// it. key must be comparable.
func ServerOf(key any) *Server { return servers.Get(key, func() *Server { return &Server{} }) }
