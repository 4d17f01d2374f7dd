package main

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"

	"github.com/tributary-go/tributary/sources/lookup"
)

// workloads reads IP addresses, and prints the pod and the workload of each.
func workloads(who *lookup.Lookup, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		address, err := netip.ParseAddr(lines.Text())
		if err != nil {
			return err
		}
		pod := who.ByIP(address) // no lock, no allocation, no request
		if pod == nil {
			fmt.Fprintln(out, address, "is no pod of this node")
			continue
		}
		owner, known := who.Owner(pod.Pod) // such as its Deployment
		fmt.Fprintln(out, address, pod.Pod.Namespace+"/"+pod.Pod.Name, owner.Kind, owner.Name, known)
	}
	return lines.Err()
}
