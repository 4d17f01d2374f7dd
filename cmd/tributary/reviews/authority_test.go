package reviews_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/asn1"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
)

// signer is a certificate with its key.
type signer struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// sign makes a certificate for client authentication, valid for an hour.
func (s *signer) sign(t testing.TB, change func(*x509.Certificate)) *signer {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "alice", Organization: []string{"dev", "ops"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	by := s
	if by == nil {
		by = &signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Certificate, key.Public(), by.key)
	require.NoError(t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &signer{made, key}
}

func isAuthority(c *x509.Certificate) {
	c.Subject.CommonName, c.ExtKeyUsage = "authority", nil
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	return (*signer)(nil).sign(t, isAuthority)
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Raw})
}

// file writes the signer's certificate where WithClientCA finds it.
func (s *signer) file(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(path, s.pem(), 0o600))
	return path
}

// over is the state of a connection over which a client has presented certificates.
func over(presented ...*signer) *tls.ConnectionState {
	state := &tls.ConnectionState{}
	for _, s := range presented {
		state.PeerCertificates = append(state.PeerCertificates, s.Certificate)
	}
	return state
}

// present sends a request over a connection with certificates.
func present(ctx context.Context, r *reviews.Reviews, next http.Handler, url, token string, presented ...*signer) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	request.TLS = over(presented...)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	r.Handler(next).ServeHTTP(recorder, request)
	return recorder
}

// TestClientCertificates: one that an authority has signed, for client authentication and for now,
// is the user and the groups that it names. Any other is no credential.
func TestClientCertificates(t *testing.T) {
	authority, other := newSigner(t), newSigner(t)
	between := authority.sign(t, isAuthority)
	uid := func(values ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, value := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.X509UID(), Value: value})
			}
		}
	}
	named := func(name string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.Subject.CommonName = name }
	}
	c := newCluster()
	r := newReviews(t, c, reviews.WithClientCA(authority.file(t)))
	for name, test := range map[string]struct {
		presented []*signer
		code      int
	}{
		"good":            {[]*signer{authority.sign(t, nil)}, 200},
		"with a UID":      {[]*signer{authority.sign(t, uid("7"))}, 200},
		"intermediate":    {[]*signer{between.sign(t, nil), between}, 200},
		"no intermediate": {[]*signer{between.sign(t, nil)}, 401},
		"none":            {nil, 401},
		"another signer":  {[]*signer{other.sign(t, nil)}, 401},
		"its own signer":  {[]*signer{other.sign(t, nil), other}, 401},
		"for servers":     {[]*signer{authority.sign(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })}, 401},
		"expired":         {[]*signer{authority.sign(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })}, 401},
		"not yet valid":   {[]*signer{authority.sign(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })}, 401},
		"no name":         {[]*signer{authority.sign(t, named(""))}, 401},
		"anonymous":       {[]*signer{authority.sign(t, named("system:anonymous"))}, 401},
		"unauthenticated": {[]*signer{authority.sign(t, func(c *x509.Certificate) { c.Subject.Organization = []string{"system:unauthenticated"} })}, 401},
		"two UIDs":        {[]*signer{authority.sign(t, uid("7", "8"))}, 401},
		"an empty UID":    {[]*signer{authority.sign(t, uid(""))}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.code, present(t.Context(), r, &passed{}, pods, "", test.presented...).Code)
			if test.code != 200 {
				return
			}
			print := sha256.Sum256(test.presented[0].Raw)
			spec := c.rights[len(c.rights)-1]
			spec.ResourceAttributes = nil
			want := authorizationv1.SubjectAccessReviewSpec{
				User: "alice", Groups: []string{"dev", "ops", "system:authenticated"},
				Extra: map[string]authorizationv1.ExtraValue{
					"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(print[:])}},
			}
			if name == "with a UID" {
				want.UID = "7"
			}
			require.Equal(t, want, spec)
		})
	}
	tokens, _ := c.asked()
	require.Zero(t, tokens, "tokens are not asked for")
}

// TestACertificateComesFirst, and a token counts if the certificate does not.
func TestACertificateComesFirst(t *testing.T) {
	authority, other := newSigner(t), newSigner(t)
	c := newCluster()
	r := newReviews(t, c, reviews.WithClientCA(authority.file(t)))
	user := func() string { return c.rights[len(c.rights)-1].User }
	require.Equal(t, 200, present(t.Context(), r, &passed{}, pods, "bob's", authority.sign(t, nil)).Code)
	require.Equal(t, "alice", user())
	require.Equal(t, 200, present(t.Context(), r, &passed{}, pods, "bob's", other.sign(t, nil)).Code)
	require.Equal(t, "bob", user())
	require.Equal(t, 200, present(t.Context(), newReviews(t, c), &passed{}, pods, "bob's", authority.sign(t, nil)).Code)
	require.Equal(t, "bob", user(), "without the option")
}

// TestTheFileOfAuthoritiesIsReadAgain within a second. A file that cannot be read changes nothing,
// and is told.
func TestTheFileOfAuthoritiesIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := newSigner(t), newSigner(t)
		path := before.file(t)
		r := newReviews(t, newCluster(), reviews.WithClientCA(path))
		old, fresh := before.sign(t, nil), after.sign(t, nil)
		codes := func(want ...int) {
			t.Helper()
			time.Sleep(time.Second)
			for i, s := range []*signer{old, fresh} {
				require.Equal(t, want[i], present(t.Context(), r, &passed{}, pods, "", s).Code)
			}
		}
		codes(200, 401)
		require.NoError(t, os.WriteFile(path, append(before.pem(), after.pem()...), 0o600))
		codes(200, 200)
		require.NoError(t, os.WriteFile(path, after.pem(), 0o600))
		codes(401, 200)
		require.NoError(t, r.Status().Err())
		require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
		codes(401, 200)
		require.ErrorContains(t, r.Status().ClientCA, path+" has no certificate")
		require.NoError(t, os.Remove(path))
		codes(401, 200)
		require.ErrorIs(t, r.Status().Err(), os.ErrNotExist)
		require.NoError(t, os.WriteFile(path, after.pem(), 0o600))
		codes(401, 200)
		require.NoError(t, r.Status().Err())
	})
}

// TestAWatchEndsWithItsCertificate: at the end of its time or its authority's, or within a minute
// once the authority is out of the file.
func TestAWatchEndsWithItsCertificate(t *testing.T) {
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	lives := func(d time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = time.Now().Add(d) }
	}
	for name, test := range map[string]func(t *testing.T) (lasts time.Duration, presented []*signer, path string){
		"certificate": func(t *testing.T) (time.Duration, []*signer, string) {
			authority := newSigner(t)
			return 200 * time.Second, []*signer{authority.sign(t, lives(200*time.Second))}, authority.file(t)
		},
		"intermediate": func(t *testing.T) (time.Duration, []*signer, string) {
			authority := newSigner(t)
			between := authority.sign(t, func(c *x509.Certificate) {
				isAuthority(c)
				lives(200 * time.Second)(c)
			})
			return 200 * time.Second, []*signer{between.sign(t, nil), between}, authority.file(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lasts, presented, path := test(t)
				r := newReviews(t, newCluster(), reviews.WithClientCA(path))
				began := time.Now()
				present(t.Context(), r, serve, pods+"?watch=1", "", presented...)
				require.Equal(t, lasts+time.Nanosecond, time.Since(began))
				require.Equal(t, 401, present(t.Context(), r, serve, pods+"?watch=1", "", presented...).Code)
			})
		})
	}
	t.Run("authority", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			authority := newSigner(t)
			path := authority.file(t)
			r := newReviews(t, newCluster(), reviews.WithClientCA(path))
			began := time.Now()
			time.AfterFunc(3*time.Minute, func() {
				if err := os.WriteFile(path, newSigner(t).pem(), 0o600); err != nil {
					t.Error(err)
				}
			})
			present(t.Context(), r, serve, pods+"?watch=1", "", authority.sign(t, nil))
			require.WithinRange(t, time.Now(), began.Add(3*time.Minute), began.Add(4*time.Minute))
		})
	})
}

// TestClientCertificatesOverTLS, in both protocols, with and without one.
func TestClientCertificatesOverTLS(t *testing.T) {
	authority := newSigner(t)
	r := newReviews(t, newCluster(), reviews.WithClientCA(authority.file(t)))
	client := authority.sign(t, nil)
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(r.Handler(&passed{}))
		server.EnableHTTP2 = http2
		server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		server.StartTLS()
		t.Cleanup(server.Close)
		transport := server.Client().Transport.(*http.Transport)
		send := func() int {
			answer, err := server.Client().Get(server.URL + pods)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http2, answer.ProtoMajor == 2)
			return answer.StatusCode
		}
		require.Equal(t, 401, send())
		transport.CloseIdleConnections()
		transport.TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{client.Raw}, PrivateKey: client.key}}
		require.Equal(t, 200, send())
	}
}
