// Package suites runs the tests of other projects on this one: those of client-go's tools/cache,
// and those of controller-runtime's pkg/cache on a real API server. Those of its client and of its
// fake client run on an API server of this project.
//
// Nothing of their code is kept here. A test copies their module from the module cache to a
// temporary folder. There it edits a few declarations (see workspace_test.go) and adds the files of
// the folder testdata, so that their constructors return ours. Their test files run as they are.
// Programs with requirements of their own have a pin each. A module in a temporary folder then has
// our versions and theirs.
//
// TestControllers runs tests of Kubernetes' own controllers, and of programs like them, on our
// informers and on client-go's. Both sides are one binary: the packages of testdata/sides make
// either. TestWild does the same with programs that keep the go.mod of their release.
//
// The tables in toolscache_test.go and controllerruntime_test.go name each test that is left out,
// with the reason. A run fails if a test fails that is not in its table, if one passes that is, or
// if fewer run than are recorded.
package suites
