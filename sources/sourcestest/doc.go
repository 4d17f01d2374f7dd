// Package sourcestest has the tests that every [sources.Source] must pass, whoever wrote it.
//
//	func TestMySource(t *testing.T) {
//		sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
//			server := newServer(t)
//			return sourcestest.Rig{Source: mine.New(server), Declare: server.Set}
//		})
//	}
package sourcestest
