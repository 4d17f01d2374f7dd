package manifest_test

import (
	"fmt"
	"strings"

	"github.com/tributary-go/tributary/sources/manifest"
)

func Example() {
	decoder := manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
	pods, rejected := decoder.Decode("/etc/kubernetes/manifests/web.yaml", []byte(`
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: server
    image: registry.example.com/server:1.2
---
apiVersion: v1
kind: Pod
metadata:
  name: broken
spec:
  containers:
  - name: server
    image: registry.example.com/server:1.2
    env:
    - value: hunter2
`))
	for _, pod := range pods {
		fmt.Println(pod.Namespace+"/"+pod.Name, "on", pod.Spec.NodeName, "pulls", pod.Spec.Containers[0].ImagePullPolicy)
	}
	for _, err := range rejected {
		fmt.Println(strings.Replace(err.Error(), ": invalid", ":\ninvalid", 1))
	}
	// Output:
	// default/web-node-1 on node-1 pulls IfNotPresent
	// /etc/kubernetes/manifests/web.yaml, document 2, line 20: pod default/broken-node-1:
	// invalid pod: spec.containers[0].env[0].name: Required value
}
