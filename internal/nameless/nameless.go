// Package nameless knows how a source declares that it may have objects without a name.
package nameless

// Kept reports whether informers keep the objects of source that have no name, as client-go's do.
// source is a listwatch.ListerWatcher: its method KeepsNameless() bool returns true then.
func Kept(source any) bool {
	keeps, ok := source.(interface{ KeepsNameless() bool })
	return ok && keeps.KeepsNameless()
}
