package suites

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
)

// wildMemory has a program's definitions, and the objects of a cluster: the number is that of an
// object, of which there are wildObjects of each kind.
var wildMemory = map[string]struct {
	folder, definitions string
	objects             []string
	read                int // of the kinds that the test counts
}{
	"traefik": {
		folder:      "pkg/provider/kubernetes/crd",
		definitions: "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
		read:        2,
		objects: []string{
			`{"apiVersion":"traefik.io/v1alpha1","kind":"IngressRoute",` + wildMeta + `,"spec":{"entryPoints":["websecure"],
				"routes":[{"kind":"Rule","match":"Host(` + "`app-%[1]d.example.com`" + `) && PathPrefix(` + "`/api`" + `)","priority":10,
				"middlewares":[{"name":"app-%[1]d"}],"services":[{"name":"app-%[1]d","port":8080}]}],"tls":{"secretName":"app-%[1]d"}}}`,
			`{"apiVersion":"traefik.io/v1alpha1","kind":"Middleware",` + wildMeta + `,"spec":{"headers":{"customRequestHeaders":{
				"X-Script-Name":"app-%[1]d","X-Forwarded-Proto":"https"},"stsSeconds":31536000}}}`,
			`{"apiVersion":"v1","kind":"Service",` + wildMeta + `,"spec":{"selector":{"app":"app-%[1]d"},"ports":[{"name":"http","port":8080,"targetPort":8080}]}}`,
			`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",` + wildMeta + `,"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],
				"endpoints":[{"addresses":["10.0.%[2]d.7"],"conditions":{"ready":true},"nodeName":"node-%[2]d","targetRef":{"kind":"Pod","name":"app-%[1]d-7d9","namespace":"default"}}]}`,
			wildSecret,
		},
	},
	"cert-manager": {
		folder:      "pkg/controller/tributary",
		definitions: "deploy/crds",
		read:        2,
		objects: []string{
			`{"apiVersion":"cert-manager.io/v1","kind":"Certificate",` + wildMeta + `,"spec":{"dnsNames":["app-%[1]d.example.com"],"secretName":"app-%[1]d",
				"issuerRef":{"name":"letsencrypt","kind":"ClusterIssuer","group":"cert-manager.io"},"usages":["digital signature","key encipherment"],
				"privateKey":{"rotationPolicy":"Always","algorithm":"ECDSA","size":256}}}`,
			`{"apiVersion":"cert-manager.io/v1","kind":"CertificateRequest",` + wildMeta + `,"spec":{"request":"` + strings.Repeat("TUlJ", 150) + `",
				"issuerRef":{"name":"letsencrypt","kind":"ClusterIssuer","group":"cert-manager.io"},"usages":["digital signature","key encipherment"]}}`,
			`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",` + wildMeta + `,"spec":{"tls":[{"hosts":["app-%[1]d.example.com"],"secretName":"app-%[1]d"}],
				"rules":[{"host":"app-%[1]d.example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"app-%[1]d","port":{"number":8080}}}}]}}]}}`,
			wildSecret,
		},
	},
}

const (
	wildObjects = 3000
	wildRounds  = 3
	wildMeta    = `"metadata":{"namespace":"default","name":"app-%[1]d","labels":{"app":"app-%[1]d","kubernetes.io/service-name":"app-%[1]d",
		"app.kubernetes.io/managed-by":"Helm","controller.cert-manager.io/fao":"true","team":"team-%[2]d"},"annotations":{"meta.helm.sh/release-name":"app-%[1]d"}}`
	wildSecret = `{"apiVersion":"v1","kind":"Secret",` + wildMeta + `,"type":"kubernetes.io/tls","stringData":{"tls.crt":"app-%[1]d` + "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" + `","tls.key":"app-%[1]d"}}`
)

// TestWildMemory measures what all informers of a program hold, by turns on both sides, each in a
// process of its own, on a server of ours.
func TestWildMemory(t *testing.T) {
	if os.Getenv("TRIBUTARY_WILD") == "" {
		t.Skip("with TRIBUTARY_WILD only")
	}
	for name, m := range wildMemory {
		t.Run(name, func(t *testing.T) {
			w := wild[name].workspace(t)
			w.add("testdata/wild/"+name, m.folder)
			binary := w.build(m.folder, wild[name].flags()...)
			address := serveWild(t, w.file(m.definitions), m.objects)
			heap, goroutines := map[string][]int{}, map[string][]int{}
			for range wildRounds {
				for _, side := range []string{theirSide, ourSide} {
					command := exec.CommandContext(t.Context(), binary, "-test.run", "^TestTributaryMemory$", "-test.v")
					command.Dir = w.file(m.folder)
					command.Env = append(os.Environ(), "TRIBUTARY_SIDE="+side, "TRIBUTARY_SERVER="+address)
					said := string(output(t, command))
					var bytes, count, objects int
					at := strings.Index(said, "\nwild: ")
					require.Positive(t, at, said)
					_, err := fmt.Sscanf(said[at+1:], "wild: %d bytes, %d goroutines, %d objects", &bytes, &count, &objects)
					require.NoError(t, err, said)
					require.Equal(t, m.read*wildObjects, objects)
					require.Equal(t, side == ourSide, strings.Contains(said, made+"informer"))
					t.Logf("%s: %d bytes, %d goroutines", side, bytes, count)
					heap[side], goroutines[side] = append(heap[side], bytes), append(goroutines[side], count)
				}
			}
			assert.Less(t, slices.Max(heap[ourSide]), slices.Min(heap[theirSide]))
			assert.LessOrEqual(t, slices.Max(goroutines[ourSide]), slices.Min(goroutines[theirSide]))
		})
	}
}

// serveWild serves these definitions and objects.
func serveWild(t *testing.T, definitions string, templates []string) (address string) {
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	require.NoError(t, crd.Serve(server, definitions))
	builtin.Serve(server)
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	client, err := dynamic.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)
	for _, template := range templates {
		for i := range wildObjects {
			var obj unstructured.Unstructured
			require.NoError(t, obj.UnmarshalJSON(fmt.Appendf(nil, template, i, i%100)))
			resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
			_, err := client.Resource(resource).Namespace("default").Create(t.Context(), &obj, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	return listener.URL
}
