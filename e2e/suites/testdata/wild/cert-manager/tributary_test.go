package tributary

import (
	"os"
	"testing"

	"github.com/tributary-go/tributary/e2e/suites/sides/measure"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
)

// TestTributaryMemory starts all informers of the controllers, as the program does, and no worker.
func TestTributaryMemory(t *testing.T) {
	until := measure.From()
	factory, err := controller.NewContextFactory(t.Context(), controller.ContextOptions{
		APIServerHost: os.Getenv("TRIBUTARY_SERVER"), KubernetesAPIQPS: 1000, KubernetesAPIBurst: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range controller.Known() {
		if _, err := build(factory); err != nil {
			t.Fatal(name, err)
		}
	}
	c, err := factory.Build("memory")
	if err != nil {
		t.Fatal(err)
	}
	stop := t.Context().Done()
	c.SharedInformerFactory.Start(stop)
	c.KubeSharedInformerFactory.Start(stop)
	c.HTTP01ResourceMetadataInformersFactory.Start(stop)
	c.SharedInformerFactory.WaitForCacheSync(stop)
	c.KubeSharedInformerFactory.WaitForCacheSync(stop)
	c.HTTP01ResourceMetadataInformersFactory.WaitForCacheSync(stop)
	certificates, err := c.SharedInformerFactory.Certmanager().V1().Certificates().Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	requests, err := c.SharedInformerFactory.Certmanager().V1().CertificateRequests().Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	until(len(certificates) + len(requests))
}
