package controllerruntime_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// leanRig is a cache in which Secrets are lean.
type leanRig struct {
	*controllerruntime.Cache
	t       *testing.T
	secrets *listwatchtest.Collection[*corev1.Secret]
	// Networks that may be slow: of the requests for a name, and of all others.
	named, unnamed *slowNetwork
	mapper         meta.RESTMapper
}

// newLeanRig makes a cache that is not started.
func newLeanRig(t *testing.T, options cache.Options, own ...controllerruntime.Option) *leanRig {
	t.Helper()
	secrets := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(ofSecrets, meta.RESTScopeNamespace)
	options.Mapper = mapper
	own = append(own, controllerruntime.Lean(&corev1.Secret{}))
	r := &leanRig{t: t, secrets: secrets, named: newSlowNetwork(), unnamed: newSlowNetwork(), mapper: mapper}
	config := secrets.Server().Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowTransport{r, next} })
	made, err := controllerruntime.NewCacheWith(own...)(config, options)
	require.NoError(t, err)
	r.Cache = made.(*controllerruntime.Cache)
	return r
}

// slowNetwork holds back what the server sends while it is shut.
type slowNetwork struct{ gate }

func newSlowNetwork() *slowNetwork {
	n := &slowNetwork{gate{open: make(chan struct{})}}
	close(n.open)
	return n
}

type slowTransport struct {
	rig  *leanRig
	next http.RoundTripper
}

func (s slowTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	network := s.rig.unnamed
	if strings.Contains(request.URL.Query().Get("fieldSelector"), "metadata.name=") {
		network = s.rig.named
	}
	response.Body = slowBody{response.Body, network, request.Context()}
	return response, nil
}

type slowBody struct {
	io.ReadCloser
	network *slowNetwork
	ctx     context.Context
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.network.mu.Lock()
	open := b.network.open
	b.network.mu.Unlock()
	select {
	case <-open:
		return n, err
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

var ofSecrets = corev1.SchemeGroupVersion.WithKind("Secret")

func secret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"value": []byte(value)},
	}
}

// put writes a Secret past the cache.
func (r *leanRig) put(name, value string) *corev1.Secret {
	r.t.Helper()
	obj := secret(name, value)
	if held, err := r.secrets.Origin().Get("ns", name); err == nil {
		obj.ResourceVersion, obj.UID = held.ResourceVersion, held.UID
		return r.secrets.Update(obj)
	}
	return r.secrets.Create(obj)
}

// value reads a Secret; it is "none" if the cache says that there is none.
func (r *leanRig) value(name string) string {
	r.t.Helper()
	var obj corev1.Secret
	err := r.Get(r.t.Context(), keyOf("ns", name), &obj)
	if apierrors.IsNotFound(err) {
		return "none"
	}
	require.NoError(r.t, err)
	require.Equal(r.t, "Secret", obj.Kind)
	return string(obj.Data["value"])
}

// requests returns the requests since the start.
func (r *leanRig) requests() (all []string) {
	synctest.Wait()
	for _, request := range r.secrets.Server().Requests(listwatchtest.List, listwatchtest.Watch, listwatchtest.Get) {
		all = append(all, request.String())
	}
	return all
}

func metadataOfSecrets() *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(ofSecrets)
	return obj
}

func metadataList() *metav1.PartialObjectMetadataList {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return all
}
