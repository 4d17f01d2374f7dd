package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// authority makes what the servers identify themselves with, and the key that signs service
// accounts' tokens.
type authority struct {
	certificate []byte // of the server, PEM; it is its own authority
	key         *ecdsa.PrivateKey
	signer      *ecdsa.PrivateKey
}

const issuer = "https://kubernetes.default.svc"

// newAuthority writes server.crt, server.key and accounts.key to folder.
func newAuthority(folder string) (*authority, error) {
	key, err := writeKey(filepath.Join(folder, "server.key"))
	if err != nil {
		return nil, err
	}
	signer, err := writeKey(filepath.Join(folder, "accounts.key"))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "tributary-e2e"},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		// Of those that it signs, too.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &authority{certificate: certificate, key: key, signer: signer}, os.WriteFile(filepath.Join(folder, "server.crt"), certificate, 0o600)
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// AccountToken signs a token of a service account as the server would, but with any lifetime: the
// server itself issues none below ten minutes.
func (c *Cluster) AccountToken(account *corev1.ServiceAccount, expires time.Time) string {
	c.t.Helper()
	claims := map[string]any{
		"iss": issuer, "aud": []string{issuer},
		"sub": "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"iat": time.Now().Add(-time.Minute).Unix(), "nbf": time.Now().Add(-time.Minute).Unix(), "exp": expires.Unix(),
		"kubernetes.io": map[string]any{
			"namespace":      account.Namespace,
			"serviceaccount": map[string]any{"name": account.Name, "uid": account.UID},
		},
	}
	payload, err := json.Marshal(claims)
	require.NoError(c.t, err)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, c.authority.signer, digest[:])
	require.NoError(c.t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature)
}

// ClientCertificate makes a certificate of a user, in PEM, which servers with the flag
// --client-ca-file and the file of [Cluster.Certificate] accept.
func (c *Cluster) ClientCertificate(user string, expires time.Time, groups ...string) (certificate, key []byte) {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(c.t, err)
	text, _ := pem.Decode(c.authority.certificate)
	issuer, err := x509.ParseCertificate(text.Bytes)
	require.NoError(c.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, issuer, private.Public(), c.authority.key)
	require.NoError(c.t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(c.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}
