// Package agents has four agents of a node, each a whole program of some fifty lines: cni, logs,
// flows and security. docs/node-agents.md says when to write which.
//
//	export KUBECONFIG=… NODE_NAME=node-1
//	go run ./examples/agents/logs
//
// In a pod, NODE_NAME comes from the field spec.nodeName.
package agents
