// Package object makes, copies and compares the objects of a collection, whatever their Go type.
package object
