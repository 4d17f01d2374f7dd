// Package relay is a handler between the clients of a Kubernetes cluster and its API server, the
// upstream. It answers reads out of copies, and passes every other request on. So one watch of the
// cluster serves all clients of a node or a site:
//
//	r, err := relay.New(config, access)
//	if err != nil { … }
//	web := &http.Server{Handler: r, TLSConfig: …}
//	go web.ServeTLS(listener, "", "")
//	…
//	err = errors.Join(r.Shutdown(ctx), web.Shutdown(ctx))
//
// The command `tributary relay` is this program; docs/relay.md is the operator's page.
//
// # The road of a request
//
// A read is a GET of a collection or of an object: a list, a watch or a get. If the upstream's
// discovery says that the kind can be listed and watched, the access control judges the client,
// and then the kind's copy answers: see [github.com/tributary-go/tributary/server/apiserver].
//
// All other requests go to the upstream under the client's own credential: writes, subresources
// such as logs and exec, discovery, OpenAPI, and reads with a header or a parameter that a copy
// does not know. The upstream also answers a read that the copy would refuse. Examples are a field
// selector that the copy lacks, a continue token or a version that it has forgotten, and a table of
// a kind without columns here.
//
// # Guarantees
//
//  1. Relay and upstream give the same answers: the same objects, versions, selections, pages and
//     errors, in the same formats (TestReadsAreThoseOfTheUpstream, TestClients). Resource versions
//     and continue tokens are the upstream's own, so that a client may move between the two at any
//     time (TestPagesGoOnAtTheOtherServer, TestWatchesGoOnAtTheOtherServer).
//  2. A copy costs the upstream one list and one watch, whatever the number of readers
//     (TestAHundredFirstReadersShareOneStart). It starts with its first reader, goes on if that one
//     leaves (TestAFirstReaderMayLeave), and ends some minutes after the last one
//     (TestACopyEndsAfterItsLastReader). A read of one object by its name starts no copy of all
//     others (TestAReadOfOneObjectStartsNoCopy).
//  3. Kinds are those of the upstream's discovery, in each version that it serves. They come and go
//     as definitions do (TestDefinitionsComeAndGo, TestADefinitionReturnsWithAnotherScope).
//  4. A list or get without a version shows every write that the upstream had acknowledged before,
//     or is an error: see [watchcache.WithUpstream] (TestReadsAreProvenFresh). An old answer has a
//     Warning (TestTheUpstreamIsAway).
//  5. The relay's own credential is for its copies alone. No request of a client is sent with it
//     (TestTheCredentialIsNeverLent). A request under a client certificate, which cannot be passed
//     on, is a 403. Discovery and OpenAPI are such a client's all the same: the relay reads an
//     exact list of documents for the clients that the access control lets in
//     (TestClientCertificatesCannotBePassedOn, TestDocumentsAreAnExactList). A path or a Connection
//     header that the next server may read in another way is a 400 (TestAPathIsReadInOneWay,
//     TestConnectionHidesNoIdentity).
//  6. Requests are passed on as they came, with connections that are upgraded, and answers as they
//     come, without a wait for more (TestRequestsPassThrough, TestUpgradesPassThrough,
//     TestLogsAreStreamed). The client's address is added to X-Forwarded-For.
//  7. No field is lost. Kinds with Go types are decoded by these only if the upstream is of no
//     later release than the types; otherwise their objects are documents in JSON
//     (TestNewerUpstreamsAreReadAsDocuments).
//  8. While the upstream is away, a request that needs it gets a 503 or 504 that names it, and
//     discovery and OpenAPI are answered as they were last, with a Warning (TestTheUpstreamIsAway).
//  9. With [WithJournals], a restart costs no list: the copies go on from their files, and a
//     client's watch goes on at its version (TestARestartCostsNoList). Secrets are in no file.
//  10. A list of an aggregated API may depend on the user, so it is copied only if [Aggregated]
//     names
//     it. An APIService may change at any time (TestAnAggregatedAPIIsNotCopied,
//     TestAnAPIServiceBecomesAggregated, TestWithoutTheRightToAPIServices).
//  11. With [WithAudit], each read that the upstream does not see is told with its user, its target
//     and the decision, and without anything secret (TestEachReadOfACopyIsAudited).
//  12. After [Relay.Shutdown], nothing that the relay started is left, and each watch has had a
//     proper end (TestShutdownLeavesNothing).
//
// # Limits
//
// With [Only], the copies are those of the given scopes, and every read beyond them is passed on
// (TestScopes, TestSelectorsAreComparedByMeaning); [Relay.Check] tells mistakes in them
// (TestCheckSaysWhatToWrite). A copy that the upstream refuses to fill, such as for a missing
// right, is tried again after half a minute. Until then its readers are passed on, and the log,
// /readyz?verbose and a metric say so (TestAKindThatTheRelayMayNotRead). An upstream need not have
// watch lists (TestAServerWithoutWatchLists).
//
// When a definition changes how objects are read, such as by a new default, a copy shows it with
// the next version of each object. While a kind vanishes upstream, a 503 may come before the 404.
// The answers of a copy lack the Warning of a deprecated kind, and the special order of the table
// of flow schemas. The paths /livez, /readyz and /healthz are the relay's own.
package relay
