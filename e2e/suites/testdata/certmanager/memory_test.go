package certmanager

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/cert-manager/cert-manager/pkg/client/clientset/versioned"
	"github.com/cert-manager/cert-manager/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer/clientgo"
)

const certificates = 20_000

// TestMemory measures what cert-manager's own informer of certificates holds, and what ours does,
// after a list of made-up certificates of 200 namespaces.
func TestMemory(t *testing.T) {
	body := listOfCertificates(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Has("sendInitialEvents"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_, _ = w.Write(body)
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	held := func(factory externalversions.SharedInformerFactory) float64 {
		before := liveHeap()
		certificateInformer := factory.Certmanager().V1().Certificates().Informer()
		stop := make(chan struct{})
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
		after := liveHeap()
		if n := len(certificateInformer.GetStore().ListKeys()); n != certificates {
			t.Fatalf("%d certificates are there", n)
		}
		close(stop)
		factory.Shutdown()
		return (after - before) / certificates
	}
	plain := func() externalversions.SharedInformerFactory {
		return externalversions.NewSharedInformerFactory(client, 0)
	}
	theirs := held(plain())
	ours := held(clientgo.Factory(plain(), []kruntime.Object{&cmapi.Certificate{}}))
	fmt.Printf("a certificate of %d bytes of JSON holds %.0f bytes in client-go's informer, %.0f in ours: %.2f\n",
		len(body)/certificates, theirs, ours, ours/theirs)
	if ours > 0.8*theirs {
		t.Error("that is more than 0.8")
	}
}

func liveHeap() float64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func listOfCertificates(t *testing.T) []byte {
	list := cmapi.CertificateList{
		TypeMeta: metav1.TypeMeta{APIVersion: "cert-manager.io/v1", Kind: "CertificateList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "100000"},
	}
	for i := range certificates {
		list.Items = append(list.Items, certificate(i))
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// certificate is one that the ingress shim has made, and that is ready.
func certificate(i int) cmapi.Certificate {
	name, namespace := fmt.Sprintf("app-%05d-tls", i), fmt.Sprintf("team-%03d", i%200)
	at, revision := metav1.Unix(1_700_000_000+int64(i)*60, 0), 3
	managed := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "cert-manager.io/v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	return cmapi.Certificate{
		TypeMeta: metav1.TypeMeta{APIVersion: "cert-manager.io/v1", Kind: "Certificate"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("6f1f3a52-0000-4000-8000-%012d", i)),
			ResourceVersion: fmt.Sprint(i + 10), Generation: 1, CreationTimestamp: at,
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": namespace, "app.kubernetes.io/name": "app",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: name,
				UID: types.UID(fmt.Sprintf("7f1f3a52-0000-4000-8000-%012d", i)),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("cert-manager-certificates-trigger", "status", `{"f:status":{".":{},"f:conditions":{".":{},`+
					`"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},`+
					`"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}}`),
				managed("cert-manager-ingress-shim", "", `{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/instance":{}},`+
					`"f:ownerReferences":{}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{},"f:usages":{}}}`),
			},
		},
		Spec: cmapi.CertificateSpec{
			DNSNames: []string{name + ".example.com"}, SecretName: name,
			IssuerRef:  cmmeta.IssuerReference{Name: "letsencrypt", Kind: "ClusterIssuer", Group: "cert-manager.io"},
			Usages:     []cmapi.KeyUsage{"digital signature", "key encipherment"},
			PrivateKey: &cmapi.CertificatePrivateKey{RotationPolicy: "Always", Algorithm: "ECDSA", Size: 256},
		},
		Status: cmapi.CertificateStatus{
			NotBefore: &at, NotAfter: &at, RenewalTime: &at, Revision: &revision,
			Conditions: []cmapi.CertificateCondition{{
				Type: "Ready", Status: "True", Reason: "Ready", Message: "Certificate is up to date and has not expired",
				LastTransitionTime: &at, ObservedGeneration: 1,
			}},
		},
	}
}
