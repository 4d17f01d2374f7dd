// Package unittest is the README's unit test: a copy of a fake's pods, through an expired version.
package unittest
