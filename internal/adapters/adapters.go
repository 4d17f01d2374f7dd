// Package adapters has options of package listwatch for the adapters to client-go alone: the
// informers of client-go do so, and this library's do not. Package listwatch sets them.
package adapters

var (
	// AsClientGo is a listwatch.FuncsOption: it keeps objects without a name under the key
	// "namespace/". All those of a namespace have that key, so the last one counts. Only fakes that
	// ignore generateName have such objects. A list that is {} is empty: servers of tests send it.
	AsClientGo any
	// Narrow returns a listwatch.FuncsOption. It selects the objects of both selectors among those
	// of the options before it.
	Narrow func(labelSelector, fieldSelector string) any
	// Pass tells a source that its reader keeps little of each object: see sharing.Memo.Pass.
	Pass func(source any)
	// Shard returns a listwatch.FuncsOption. It selects the objects of a shard, by the text of a
	// sharding.Selector, and panics if that is none.
	Shard func(selector string) any
)

// KeepsNameless reports whether informers keep the objects of source that have no name. source is a
// listwatch.ListerWatcher: its method KeepsNameless() bool returns true then.
func KeepsNameless(source any) bool {
	keeps, ok := source.(interface{ KeepsNameless() bool })
	return ok && keeps.KeepsNameless()
}
