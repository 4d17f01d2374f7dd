// Package interop is where controller-runtime meets package informer/clientgo, apart from the SDK,
// which does not depend on controller-runtime. It is tests only.
package interop
