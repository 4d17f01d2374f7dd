package suites

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wild are programs with the requirements of their own go.mod: ours are added to it. The edits are
// an adopter's lines, beside those that bothSides changes.
var wild = map[string]peer{
	"metrics-server": {
		pin:      pin{module: "sigs.k8s.io/metrics-server", version: "v0.9.0", own: "v0.36.2"},
		packages: map[string]sides{"pkg/server": {equal: 0}},
		lines:    [2]int{2, 0},
	},
	// Its source of OpenShift's routes is left out: the client of that API is not to be had.
	"external-dns": {
		pin: pin{module: "sigs.k8s.io/external-dns", version: "v0.23.0", own: "v0.37.0", toolchain: "go1.27.4"},
		edits: slices.Concat(
			adoptFactories("source/openshift_route.go",
				"extInformers.NewSharedInformerFactoryWithOptions(ocpClient, 0*time.Second, extInformers.WithNamespace(cfg.Namespace))", "routev1: Route"),
			adoptFactories("source/istio_gateway.go",
				"istioinformers.NewSharedInformerFactoryWithOptions(istioClient, 0, istioinformers.WithNamespace(cfg.Namespace))", "networkingv1: Gateway"),
			adoptFactories("source/istio_virtualservice.go",
				"istioinformers.NewSharedInformerFactoryWithOptions(istioClient, 0, istioinformers.WithNamespace(cfg.Namespace))", "networkingv1: VirtualService Gateway"),
			adoptFactories("source/gateway.go",
				"newGatewayInformerFactory(client, config.GatewayNamespace, gwLabels)", "v1: Gateway",
				"lsInformerFactory|.Gateway()", "v1: ListenerSet"),
			adoptFactories("source/gateway_httproute.go", "factory|.Gateway()", "v1: HTTPRoute"),
			adoptFactories("source/gateway_grpcroute.go", "factory|.Gateway()", "v1: GRPCRoute"),
			adoptFactories("source/gateway_tlsroute.go", "factory|.Gateway()", "v1: TLSRoute"),
			adoptFactories("source/gateway_tcproute.go", "factory|.Gateway()", "v1alpha2: TCPRoute"),
			adoptFactories("source/gateway_udproute.go", "factory|.Gateway()", "v1alpha2: UDPRoute"),
			adoptCache("source/crd.go", "crcache.New("),
			adoptCache("registry/crd/crd.go", "crcache.New(")),
		packages: map[string]sides{
			"registry/crd": {equal: 1}, "source/informers": {equal: 1},
			"source": {equal: 137},
		},
		lines: [2]int{55, 7},
		rig: func(w *workspace) {
			for _, name := range []string{"source/openshift_route.go", "source/openshift_route_test.go", "source/openshift_route_fqdn_test.go"} {
				require.NoError(w.t, os.Remove(w.file(name)))
			}
			w.replace("source/store.go", "return NewOcpRouteSource(ctx, ocpClient, cfg)", "panic(ocpClient)")
			w.stand("github.com/openshift/client-go", map[string]string{"route/clientset/versioned/versioned.go": `package versioned

import "k8s.io/client-go/rest"

type Interface any

func NewForConfig(*rest.Config) (Interface, error) { return struct{}{}, nil }
`})
			w.drop("github.com/openshift/api")
		},
	},
	"traefik": {
		pin: pin{module: "github.com/traefik/traefik/v3", version: "v3.7.13", own: "v0.36.1"},
		edits: slices.Concat(
			adoptFactories("pkg/provider/kubernetes/crd/client.go",
				"traefikinformers.NewSharedInformerFactoryWithOptions(c.csCrd, resyncPeriod, traefikinformers.WithNamespace(ns), traefikinformers.WithTweakListOptions(matchesLabelSelector))",
				"traefikv1alpha1: IngressRoute Middleware MiddlewareTCP IngressRouteTCP IngressRouteUDP TLSOption ServersTransport ServersTransportTCP TLSStore TraefikService"),
			adoptFactories("pkg/provider/kubernetes/gateway/client.go",
				"gateinformers.NewSharedInformerFactoryWithOptions(c.csGateway, resyncPeriod, gateinformers.WithTweakListOptions(labelSelectorOptions))",
				"gatev1: GatewayClass",
				"gateinformers.NewSharedInformerFactoryWithOptions(c.csGateway, resyncPeriod, gateinformers.WithNamespace(ns))",
				"gatev1: Gateway HTTPRoute GRPCRoute BackendTLSPolicy TLSRoute gatev1beta1: ReferenceGrant",
				"factoryGateway|.Gateway().V1alpha2()", "gatev1alpha2: TCPRoute"),
			adoptFactories("pkg/provider/kubernetes/knative/client.go",
				`knativenetworkinginformers.NewSharedInformerFactoryWithOptions(c.csKnativeNetworking, resyncPeriod, knativenetworkinginformers.WithNamespace(ns), knativenetworkinginformers.WithTweakListOptions(func(opts *metav1.ListOptions) {
			opts.LabelSelector = c.labelSelector
		}))`, "knativenetworkingv1alpha1: Ingress"),
		),
		packages: map[string]sides{
			"pkg/provider/kubernetes/crd": {equal: 17}, "pkg/provider/kubernetes/gateway": {equal: 15},
			"pkg/provider/kubernetes/ingress": {equal: 3}, "pkg/provider/kubernetes/ingress-nginx": {equal: 4},
			"pkg/provider/kubernetes/knative": {equal: 1},
		},
		// Two empty structs are a module of its own, which is in the repository alone. A fork that
		// two tests without informers need, and some clouds' modules, are not to be had.
		rig: func(w *workspace) {
			w.stand("github.com/traefik/traefik/dynamic/ext", map[string]string{"ext.go": "package ext\n\ntype (\n\tHTTP   struct{}\n\tRouter struct{}\n)\n"})
			w.drop("github.com/nrdcg/oci-go-sdk/common/v1065", "github.com/nrdcg/oci-go-sdk/dns/v1065", "github.com/sacloud/sacloud-sdk-go",
				"github.com/ucloud/ucloud-sdk-go", "github.com/yandex-cloud/go-sdk/services/dns")
			w.stand("github.com/abbot/go-http-auth", map[string]string{"auth.go": "package auth\n\nfunc CheckSecret(_, _ string) bool { return false }\n"})
		},
		lines: [2]int{17, 0},
	},
	"cert-manager": {
		pin: pin{module: "github.com/cert-manager/cert-manager", version: "v1.21.2", own: "v0.36.2"},
		edits: slices.Concat(
			adoptFactories("pkg/controller/context.go",
				"informers.NewSharedInformerFactoryWithOptions(clients.cmClient, resyncPeriod, informers.WithNamespace(opts.Namespace))",
				certificateTypes),
			[]edit{{"pkg/controller/context.go", "import (\n", "import (\n\tcmapi \"github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1\"\n"}},
			adoptFactories("pkg/controller/test/context_builder.go",
				"informers.NewSharedInformerFactory(b.CMClient, informerResyncPeriod)", certificateTypes),
			[]edit{{"pkg/controller/test/context_builder.go", "import (\n", "import (\n\tcmacme \"github.com/cert-manager/cert-manager/pkg/apis/acme/v1\"\n\tcmapi \"github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1\"\n"}},
			adoptFactories("pkg/controller/acmechallenges/controller.go", "ctx.GWShared|.Gateway()", "gwapi: HTTPRoute"),
			[]edit{{"pkg/controller/acmechallenges/controller.go", "import (\n", "import (\n\tgwapi \"sigs.k8s.io/gateway-api/apis/v1\"\n"}},
			[]edit{{"pkg/controller/certificate-shim/gateways/controller.go", "import (\n", "import (\n\tgwapi \"sigs.k8s.io/gateway-api/apis/v1\"\n"}},
			adoptFactories("pkg/controller/certificate-shim/gateways/controller.go", "ctx.GWShared|.Gateway().V1().Gateways().Lister()", "gwapi: Gateway"),
			adoptFactories("pkg/controller/certificate-shim/listenerset/controller.go", "ctx.GWShared|.Gateway().V1().Gateways().Lister()", "gwapi: Gateway ListenerSet"),
			adoptFactories("internal/informers/core_filteredsecrets.go"),
			[]edit{{"internal/informers/core_filteredsecrets.go", "corev1informers.NewFilteredSecretInformer(",
				"clientgo.Filtered(corev1informers.NewFilteredSecretInformer, &corev1.Secret{})("}},
		),
		packages: map[string]sides{
			"pkg/controller/acmechallenges":                        {equal: 2},
			"pkg/controller/acmeorders":                            {equal: 1},
			"pkg/controller/certificate-shim/gateways":             {equal: 1},
			"pkg/controller/certificate-shim/ingresses":            {equal: 1},
			"pkg/controller/certificate-shim/listenerset":          {equal: 2},
			"pkg/controller/certificaterequests/acme":              {equal: 2},
			"pkg/controller/certificaterequests/ca":                {equal: 1},
			"pkg/controller/certificaterequests/selfsigned":        {equal: 3},
			"pkg/controller/certificates/issuing":                  {equal: 2},
			"pkg/controller/certificates/keymanager":               {equal: 1},
			"pkg/controller/certificates/readiness":                {equal: 2},
			"pkg/controller/certificates/requestmanager":           {equal: 1},
			"pkg/controller/certificates/revisionmanager":          {equal: 1},
			"pkg/controller/certificates/trigger":                  {equal: 1},
			"pkg/controller/certificatesigningrequests/acme":       {equal: 2},
			"pkg/controller/certificatesigningrequests/selfsigned": {equal: 4},
			"pkg/controller/clusterissuers":                        {equal: 1},
			"pkg/controller/issuers":                               {equal: 1},
		},
		first: []string{"pkg/controller/certificates/revisionmanager"},
		lines: [2]int{29, 0},
	},
	"argo-workflows": {
		pin: pin{module: "github.com/argoproj/argo-workflows/v4", version: "v4.0.5", own: "v0.35.0"},
		edits: slices.Concat(
			adoptFactories("workflow/controller/controller.go",
				argoFactory+"|.Argoproj().V1alpha1().WorkflowTaskSets()", "wfv1: WorkflowTaskSet",
				argoFactory+"|.Argoproj().V1alpha1().WorkflowArtifactGCTasks()", "wfv1: WorkflowArtifactGCTask"),
			[]edit{{"workflow/controller/controller.go", "v1.NewFilteredConfigMapInformer(",
				"clientgo.Filtered(v1.NewFilteredConfigMapInformer, &apiv1.ConfigMap{})("}},
			adoptFactories("workflow/controller/taskresult.go"),
			[]edit{{"workflow/controller/taskresult.go", "wfextvv1alpha1.NewFilteredWorkflowTaskResultInformer(",
				"clientgo.Filtered(wfextvv1alpha1.NewFilteredWorkflowTaskResultInformer, &wfv1.WorkflowTaskResult{})("}},
			adoptFactories("workflow/controller/controller_test.go", "wfextv.NewSharedInformerFactory(wfclientset, 0)",
				"wfv1: WorkflowTaskSet WorkflowArtifactGCTask WorkflowTemplate ClusterWorkflowTemplate"),
		),
		packages: map[string]sides{
			"server/auth": {equal: 1}, "server/cache": {equal: 1},
			"workflow/controller": {equal: 377}, "workflow/gccontroller": {equal: 6},
		},
		lines: [2]int{22, 5},
		// Its clients for tests, generated for client-go 0.33, do not say that they answer no watch
		// list. It sleeps at each update of a workflow, in all for ten minutes. One test reads a
		// result that its informer may not have yet: with client-go's, it failed every other time.
		rig: func(w *workspace) {
			w.t.Setenv("KUBE_FEATURE_WatchListClient", "false")
			w.replace("workflow/controller/operator.go", "time.Sleep(1 * time.Second)", "time.Sleep(100 * time.Millisecond)")
			const created = "\t\t\t\ttaskResult,\n\t\t\t\tmetav1.CreateOptions{},\n\t\t\t)\n"
			w.replace("workflow/controller/controller_test.go", created, created+
				"\t\tfor err == nil && len(woc.controller.taskResultInformer.GetStore().ListKeys()) == 0 {\n\t\t\ttime.Sleep(time.Millisecond)\n\t\t}\n")
		},
	},
	"kueue": {
		pin: pin{module: "sigs.k8s.io/kueue", version: "v0.17.0", own: "v0.35.3"},
		edits: []edit{
			{"cmd/kueue/main.go", "\tmgr, err := ctrl.NewManager(kubeConfig, options)", "\toptions.NewCache = controllerruntime.NewCache\n\tmgr, err := ctrl.NewManager(kubeConfig, options)"},
			{"cmd/kueue/main.go", "import (\n", "import (\n\t\"" + newCache + "\"\n"},
			{"test/integration/framework/framework.go", "\t\tmgrOptions := manager.Options{\n", "\t\tmgrOptions := manager.Options{\n\t\t\tNewCache: controllerruntime.NewCache,\n"},
			{"test/integration/framework/framework.go", "import (\n", "import (\n\t\"" + newCache + "\"\n"},
		},
		packages: map[string]sides{"test/integration/singlecluster/controller/core": {equal: 51, ginkgo: true}},
		lines:    [2]int{4, 0},
		// What its Makefile makes by kustomize, without the webhooks of conversion.
		rig: func(w *workspace) {
			require.NoError(w.t, os.CopyFS(w.file("config/components/crd/_output"), os.DirFS(w.file("config/components/crd/bases"))))
		},
	},
}

const certificateTypes = "cmapi: Certificate CertificateRequest Issuer ClusterIssuer cmacme: Order Challenge"

// argoFactory is of the same shape for two types.
const argoFactory = `externalversions.NewSharedInformerFactoryWithOptions(
		wfc.wfclientset,
		workflowTaskSetResyncPeriod,
		externalversions.WithNamespace(wfc.GetManagedNamespace()),
		externalversions.WithTweakListOptions(func(x *metav1.ListOptions) {
			r := util.InstanceIDRequirement(wfc.Config.InstanceID)
			x.LabelSelector = r.String()
		}))`

// adoptFactories wraps constructors of generated factories by clientgo.Factory. Each call is
// followed by its types, as "package: Type Type". What follows the factory, behind a bar, stays.
func adoptFactories(file string, calls ...string) []edit {
	runtimes := ""
	if len(calls) > 0 {
		runtimes = "\tkruntime \"k8s.io/apimachinery/pkg/runtime\"\n"
	}
	edits := []edit{{file, "import (\n", "import (\n\t\"" + ourModule + "/informer/clientgo\"\n" + runtimes}}
	for call := range slices.Chunk(calls, 2) {
		prefix, types := "", []string(nil)
		for _, word := range strings.Fields(call[1]) {
			if name, ok := strings.CutSuffix(word, ":"); ok {
				prefix = name
				continue
			}
			types = append(types, "&"+prefix+"."+word+"{}")
		}
		factory, use, _ := strings.Cut(call[0], "|")
		edits = append(edits, edit{file, factory + use, "clientgo.Factory(" + factory + ", []kruntime.Object{" + strings.Join(types, ", ") + "})" + use})
	}
	return edits
}

// adoptCache makes the cache of a program that calls controller-runtime's constructor itself.
func adoptCache(file, call string) []edit {
	return []edit{{file, call, "controllerruntime.NewCache("}, {file, "import (\n", "import (\n\t\"" + newCache + "\"\n"}}
}

// stand puts a module with these files in the place of one that is not to be had.
func (w *workspace) stand(module string, files map[string]string) {
	w.t.Helper()
	folder := filepath.Join(w.root+"-stand", module)
	files["go.mod"] = "module " + module + "\n\ngo 1.25.0\n"
	for name, content := range files {
		name = filepath.Join(folder, name)
		require.NoError(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(w.t, os.WriteFile(name, []byte(content), 0o644))
	}
	w.require(module, folder)
}

// drop takes requirements away that are not to be had, and that no judged package imports.
func (w *workspace) drop(modules ...string) {
	w.t.Helper()
	for _, module := range modules {
		output(w.t, w.command("mod", "edit", "-droprequire", module))
	}
}

// TestWild runs tests of programs at their own versions, on our informers and on client-go's.
// TRIBUTARY_WILD has the packages to run, or "all".
func TestWild(t *testing.T) { judgePeers(t, wild, "TRIBUTARY_WILD") }
