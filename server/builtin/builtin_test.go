package builtin_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	autoscalingac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// newClient is a client of a server with all built-in kinds.
func newClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	builtin.Serve(s)
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		listener.Close()
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return client
}

// TestAllKinds: each kind can be made, and its columns and fields can be read from an empty object.
func TestAllKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range builtin.All() {
		name := r.Kind.GroupVersionResource().String()
		require.False(t, seen[name], name)
		seen[name] = true
		obj := r.Kind.Empty()
		for _, c := range r.View.Columns {
			require.NotPanics(t, func() { c.Value(obj) }, "%s: %s", name, c.Name)
		}
		for _, f := range r.Kind.Fields {
			require.NotPanics(t, func() { f.Value(obj) }, "%s: %s", name, f.Label)
		}
	}
	require.Greater(t, len(seen), 50)
}

func TestOf(t *testing.T) {
	r := builtin.Of[*appsv1.Deployment]()
	require.Equal(t, "deployments.apps", r.Kind.GroupResource().String())
	require.Equal(t, []string{"deploy"}, r.View.ShortNames)
	require.Equal(t, "0/0", r.View.Columns[0].Value(&appsv1.Deployment{}))
	require.NotNil(t, builtin.Of[*corev1.Pod]().Rules.GracePeriod, "pods have their own rules")
	require.PanicsWithValue(t, "builtin: Of: *v1.Scale is not the Go type of a built-in kind", func() { builtin.Of[*autoscalingv1.Scale]() })
}

// TestServeKeepsWhatIsServed: a typed collection may be there before the others.
func TestServeKeepsWhatIsServed(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	defer s.Close()
	deployments := apiserver.Serve(s, builtin.Of[*appsv1.Deployment]())
	builtin.Serve(s)
	_, err = deployments.Create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	require.NoError(t, err)
	require.True(t, s.Serves(corev1.SchemeGroupVersion.WithResource("services")))
	require.False(t, s.Serves(corev1.SchemeGroupVersion.WithResource("widgets")))
}

func front() *appsv1.Deployment {
	labels := map[string]string{"app": "front"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "front"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

// TestScale by an unmodified clientset, as autoscalers do it.
func TestScale(t *testing.T) {
	deployments := newClient(t).AppsV1().Deployments("ns")
	created, err := deployments.Create(t.Context(), front(), metav1.CreateOptions{})
	require.NoError(t, err)
	scale, err := deployments.GetScale(t.Context(), "front", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(1), scale.Spec.Replicas)
	require.Equal(t, "app=front", scale.Status.Selector)
	require.Equal(t, created.UID, scale.UID)

	scale.Spec.Replicas = 3
	scaled, err := deployments.UpdateScale(t.Context(), "front", scale, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(3), scaled.Spec.Replicas)
	_, err = deployments.UpdateScale(t.Context(), "front", scale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "of the version before: %v", err)
	scaled.Spec.Replicas = -1
	_, err = deployments.UpdateScale(t.Context(), "front", scaled, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType: `{"spec":{"replicas":5}}`, types.JSONPatchType: `[{"op":"replace","path":"/spec/replicas","value":5}]`,
	} {
		_, err = deployments.Patch(t.Context(), "front", kind, []byte(patch), metav1.PatchOptions{}, "scale")
		require.NoError(t, err)
	}
	_, err = deployments.Patch(t.Context(), "front", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "scale")
	require.NoError(t, err)
	d, err := deployments.Get(t.Context(), "front", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(5), *d.Spec.Replicas, "a dry run writes nothing")
	require.Equal(t, created.Generation+2, d.Generation, "two changes of the spec")
	_, err = deployments.GetScale(t.Context(), "none", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestApply: a collection of any kind stores the Go types of its kind, also after a server-side
// apply, whose library works on documents.
func TestApply(t *testing.T) {
	deployments := newClient(t).AppsV1().Deployments("ns")
	const configuration = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front"},"spec":{"paused":true}}`
	_, err := deployments.Create(t.Context(), front(), metav1.CreateOptions{})
	require.NoError(t, err)
	for range 2 {
		applied, err := deployments.Patch(t.Context(), "front", types.ApplyPatchType, []byte(configuration),
			metav1.PatchOptions{FieldManager: "me", Force: ptr.To(true)})
		require.NoError(t, err)
		require.True(t, applied.Spec.Paused)
		require.Equal(t, "i", applied.Spec.Template.Spec.Containers[0].Image)
	}
}

// TestApplyScale: an applied scale is named by its path alone.
func TestApplyScale(t *testing.T) {
	deployments := newClient(t).AppsV1().Deployments("ns")
	_, err := deployments.Create(t.Context(), front(), metav1.CreateOptions{})
	require.NoError(t, err)
	applied, err := deployments.ApplyScale(t.Context(), "front",
		autoscalingac.Scale().WithSpec(autoscalingac.ScaleSpec().WithReplicas(4)), metav1.ApplyOptions{FieldManager: "me", Force: true})
	require.NoError(t, err)
	require.Equal(t, int32(4), applied.Spec.Replicas)
}

// TestSecrets: text becomes data, the type is filled in, and stays.
func TestSecrets(t *testing.T) {
	secrets := newClient(t).CoreV1().Secrets("ns")
	created, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.SecretTypeOpaque, created.Type)
	require.Equal(t, map[string][]byte{"k": []byte("v")}, created.Data)
	require.Empty(t, created.StringData)
	created.Type = corev1.SecretTypeDockercfg
	_, err = secrets.Update(t.Context(), created, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

// TestSystemNamespaces: what runs on a new cluster finds its namespaces, with their labels.
func TestSystemNamespaces(t *testing.T) {
	namespaces := newClient(t).CoreV1().Namespaces()
	found, err := namespaces.Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.NamespaceActive, found.Status.Phase)
	require.Equal(t, map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}, found.Labels)
}

// TestPartsOfKinds: a request for a certificate is approved, and an account gets a token.
func TestPartsOfKinds(t *testing.T) {
	client := newClient(t)
	requests := client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	approved, err := requests.UpdateApproval(t.Context(), "r", request, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Len(t, approved.Status.Conditions, 1)

	accounts := client.CoreV1().ServiceAccounts("ns")
	_, err = accounts.CreateToken(t.Context(), "a", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := accounts.CreateToken(t.Context(), "a", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, token.Status.Token)
	require.True(t, token.Status.ExpirationTimestamp.After(time.Now()))
}

// BenchmarkServe is what a test waits for a server with all built-in kinds.
func BenchmarkServe(b *testing.B) {
	for b.Loop() {
		s, err := apiserver.NewServer()
		require.NoError(b, err)
		builtin.Serve(s)
		s.Close()
	}
}
