// Package sourcestest tests the contract of any [sources.Source].
//
//	func TestMySource(t *testing.T) {
//		sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
//			server := newServer(t)
//			return sourcestest.Rig{Source: mine.New(server), Declare: server.Set}
//		})
//	}
package sourcestest
