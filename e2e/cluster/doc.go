// Package cluster runs a real control plane for tests: one etcd, and one or more Kubernetes API
// servers on it.
//
//	c := cluster.Start(t)
//	client := kubernetes.NewForConfigOrDie(c.Server.Config(cluster.Admin))
//	c.Server.Kill()
//	ready := c.Server.Restart()
//
// The binaries are built by the go command from the module in the folder servers, and kept by
// version in the user's cache directory. Everything listens on free loopback ports; the API servers
// speak TLS, authenticate by token and authorize by RBAC. No other part of a control plane runs: no
// scheduler, no controllers, no kubelet.
//
// What Start has begun ends with the test, however that ends: each process is killed by Cleanup,
// and on Linux by the kernel when the test binary dies.
//
// A [Process] is one server, and [Cached] keeps the binary of another one in the same cache.
//
// Methods that fail end the test, so they belong on its goroutine. Under -short, Start skips it.
package cluster
