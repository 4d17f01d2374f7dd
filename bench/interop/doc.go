// Package interop is where controller-runtime meets package informer/clientgo, in a module of its
// own: the SDK does not depend on controller-runtime. It is tests only.
package interop
