// Package refs holds the objects that something refers to by name, and no others: the Secrets and
// ConfigMaps of a node's pods, the certificates of ingresses. It is the kubelet's object manager as
// a library.
//
//	secrets := refs.New(refs.FromClient[corev1.Secret](clientset.CoreV1().RESTClient(), "secrets"))
//	ended := make(chan error, 1)
//	go func() { ended <- secrets.Run(ctx) }()
//	secrets.SetOwner(pod.UID, refs.In(ns, "tls", "db"))
//	obj, err := secrets.Get(ctx, ns, "tls") // fresh, or says why not
//	…
//	return <-ended // Run's error; nil at the end of ctx
//
// Owners refer to names. [Refs.SetOwner] states the names of one owner, and [FromOwners] takes them
// from an informer: [SecretsOf] and [ConfigMapsOf] tell which names a pod mentions. [Refs.Changes]
// yields each change with the owners that it concerns.
//
// # How it works
//
// Each name has a watch of its own with the field selector metadata.name. It is a watch list
// (KEP-3157): one request brings the state, and then the changes. So the verb watch is enough, and
// a role may name the objects:
//
//	rules:
//	- apiGroups: [""]
//	  resources: [secrets]
//	  verbs: [watch, list]
//	  resourceNames: [tls, db]
//
// The verb list is for servers without watch lists: a LIST and a WATCH stand in for it.
//
// When a watch ends, the next one brings the state again, which is one object. So no version can be
// too old, and there is no other way for a state to arrive.
//
// [WithNamespaceWatch] replaces the watches of a namespace by one of its metadata, for programs
// with thousands of names in a namespace, and the right to watch it.
//
// # Guarantees
//
//  1. A name is followed as long as an owner has it. Nothing else is requested, decoded or held,
//     unless [WithNamespaceWatch] asks for metadata. An answer with another object is an error.
//  2. [Refs.Get] returns a state that the server had. After an owner has got a name, the first Get
//     of the name returns a state that is no older than that: it comes from etcd, not from a
//     server's cache.
//  3. If the state is not known to be current, Get returns an [Error] with the class, the cause and
//     the time, and the last known state beside it. Silence is noticed within the liveness period,
//     or twice that before a watch has brought its first event or bookmark.
//  4. A state that is older than the last one is believed only if the server tells it twice: its
//     etcd was restored from a backup. After an interruption the server's state counts, whichever
//     version is newer. With [WithNamespaceWatch] an object of the same UID and version is taken
//     for the same.
//  5. [Refs.Changes] leads from state to state: each change begins where the last one of its name
//     ended. Nothing is lost, nothing is told twice, and a slow reader costs no queue.
//  6. A Secret or ConfigMap with immutable set is read once, and not followed. It is read again
//     when another owner gets its name.
//  7. A watch ends if there was no Get for five minutes ([WithIdle]). The next Get reads the object
//     again.
//  8. At most 16 requests wait for their state ([WithPace]), and 8 more if Gets wait for them. A
//     server that is away, or answers with a 429 or a 5xx, is asked at one pace for all names, and
//     its Retry-After is obeyed.
//  9. When Run returns, all goroutines have ended.
//
// # Cost
//
// A name takes 23 KB beside its object: 9 KB of heap, and 14 KB of stacks, for a goroutine of this
// package and one that net/http has for each stream. client-go's reflectors take 34 KB and four
// goroutines. With WithNamespaceWatch a name takes 1 to 2 KB, and none. docs/refs.md has the
// figures.
//
// # Limits
//
// Between two signs of life the state may be behind without a sign, as with every watch. Objects
// are shared and read-only. There is no list of objects, and no index: names are all that is known.
// A collection of which most objects are needed is cheaper as an informer: see docs/refs.md.
package refs
