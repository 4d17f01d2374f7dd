// Package reviews lets the clients of a cluster read out of a cache what they could read in the
// cluster itself. It asks the cluster's API server: with TokenReviews for the users of bearer
// tokens, and with SubjectAccessReviews for their rights.
//
//	access, err := reviews.New(config, reviews.WithClientCA("/etc/kubernetes/pki/ca.crt"))
//	if err != nil { … }
//	handler := access.Handler(server) // an apiserver.Server with the cache
//	web := &http.Server{Handler: handler, TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert, … }}
//
// The authenticators, the authorizer, their caches and the attributes of a request are those of
// k8s.io/apiserver, as in any aggregated API server. This package adds what a cache of a cluster
// needs beside them: watches that end with their right, decisions that hold while the cluster is
// away, and bounds.
//
// The credential of config needs the verb create on tokenreviews.authentication.k8s.io and on
// subjectaccessreviews.authorization.k8s.io, as ClusterRole system:auth-delegator has it. A client
// needs nothing but its own rights: a path such as /metrics needs the right to get it.
//
// # Guarantees
//
// Of access:
//
//  1. The handler behind sees a request only if the upstream has accepted its token, or a client
//     authority has signed its certificate for client authentication, and the upstream has allowed
//     this user these attributes (TestWhoMayReadWhat, TestClientCertificates). Anonymous requests,
//     and those with Impersonate-* headers, are refused. If a request has a certificate and a
//     token, the certificate is tried first, as on kube-apiserver (TestACertificateComesFirst).
//  2. The attributes are derived by kube-apiserver's code: verb, group, version, resource,
//     subresource, namespace and name, and the requirements of both selectors. The user's UID,
//     groups and extra values go along (TestTheQuestionSaysAll). A request that this server would
//     route to another resource is refused (FuzzRequests).
//  3. A decision counts for requests whose questions are equal byte by byte, and for no others
//     (TestDecisionsAreNotMixedUp).
//  4. If there is no decision, the request is refused: 503 while the upstream does not answer, 429
//     if too many questions wait, and 500 if the upstream refuses to review. The text and [Status]
//     name the right that is missing (TestFailsClosed).
//  5. Refusals are those of kube-apiserver (TestWhoMayReadWhat).
//
// Of time:
//
//  6. A right that is taken away, and a token that is revoked, are used for no longer than
//     [WithRenewal], a minute by default; a certificate no longer than it is valid. A right that is
//     given is seen after [WithRefusal], ten seconds, at the latest (TestDecisionsAreRenewed).
//  7. Open watches end then, too, with a proper end, as those of kube-apiserver do when it ends
//     them: over HTTP/1.1, over HTTP/2, and over web sockets. The client comes back,
//     and gets its 401 or 403 (TestAWatchEndsWithItsRight, TestAWatchEndsWithItsCertificate).
//  8. While the upstream does not answer a renewal, a decision holds for [WithHold] longer, ten
//     minutes by default. That is for connections that fail, for 10 seconds without an answer, for
//     429 and for 5xx, and never for a refusal (TestADecisionHoldsWhileTheUpstreamIsAway,
//     TestNothingHoldsAfterARefusal). A request waits two seconds at most for the renewal of its
//     token, and for that of its right, and not at all once they have failed; the upstream is asked
//     again every five seconds at most.
//
// Of cost:
//
//  9. A question is asked once, for all requests and watches that need its answer, and goes on if
//     the first client goes (TestAQuestionIsAskedOnce).
//  10. 65,536 accepted decisions are held, and the least recently used ones go. Refusals have room
//     for themselves, so that no number of wrong tokens displaces an accepted one
//     (TestAFloodOfTokensDisplacesNoGoodOne). Of each kind of review, 32 new questions are in
//     flight, and 1,024 wait, in 16 MiB (TestQuestionsThatWaitAreBoundedInBytes); renewals have 32
//     places and 16 MiB of their own (TestRenewalsDoNotWaitForAFlood). A token has 64 KiB at most.
//     A watch with a right of its own takes less than 3 KiB (TestAWatchBehindReviewsTakesFewBytes).
//
// Of secrecy:
//
//  11. Tokens are in no log, error, metric or key: decisions are found by a keyed hash of the
//     question (TestTokensAreKeptNowhere). An open watch keeps its token, to ask for it again.
//     Redirects of the upstream are not followed. While the upstream does not answer,
//     k8s.io/apiserver logs a line, without the question, for each review that fails.
//
// # Not promised
//
// A review says that a user may list a resource, and not which objects the user would see. So put
// nothing behind this package that an aggregated API serves, whose lists may depend on the user:
// kubectl get apiservices says Local of all others. Package relay sees to that itself.
//
// A right that is given and taken away within the time of guarantee 6 may never be seen. A list
// that is being written is not broken off. If the upstream's authorizer fails, so that its review
// has an evaluation error and does not allow the request, that is a refusal. A user with a right to
// list may ask for as many selectors as it likes, and so displace the decisions of others, which
// costs a question each.
package reviews
