package connection

import (
	"os"
	"slices"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"
)

// Separate returns a copy of config: its clients have a connection of their own. All clients of
// copies of equal configs share it, however often Separate is called. The copy of a copy has a
// third. It panics if config is nil.
func Separate(config *rest.Config) *rest.Config {
	if config == nil {
		panic("connection: Separate: the config is nil")
	}
	separate := rest.CopyConfig(config)
	// client-go keeps one transport for each list of protocols, among other settings. To spell out
	// the default list makes another transport, and says the same to the server.
	switch protocols := separate.NextProtos; {
	case os.Getenv("DISABLE_HTTP2") != "": // client-go's switch: a server must not choose HTTP/2
	case len(protocols) == 0:
		separate.NextProtos = []string{http2.NextProtoTLS, "http/1.1"}
	case slices.Contains(protocols, http2.NextProtoTLS):
		separate.NextProtos = append(slices.Clone(protocols), protocols[len(protocols)-1])
	}
	return separate
}
