package reviews

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/asn1"
)

// lookEvery is how often the file of authorities is read, at most.
const lookEvery = time.Second

// credentialID is the name that the API server gives to the identifier of a credential among the
// extra values of a user.
const credentialID = "authentication.kubernetes.io/credential-id"

// authority verifies client certificates by a file that may change.
type authority struct {
	path string

	mu     sync.Mutex // guards the next fields
	looked time.Time
	text   []byte
	roots  *x509.CertPool // of the last content that could be used
	err    error          // why the present content cannot be used
}

// newAuthority reads the file.
func newAuthority(path string) (*authority, error) {
	a := &authority{path: path}
	a.lookLocked()
	if a.err != nil {
		return nil, fmt.Errorf("reviews: WithClientCA: %w", a.err)
	}
	return a, nil
}

func (a *authority) lookLocked() {
	a.looked = time.Now()
	text, err := os.ReadFile(a.path)
	if err != nil {
		a.err = err
		return
	}
	if a.roots != nil && bytes.Equal(text, a.text) {
		a.err = nil
		return
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		a.err = fmt.Errorf("%s has no certificate in PEM", a.path)
		return
	}
	a.text, a.roots, a.err = text, roots, nil
}

// current are the authorities of the file, at most lookEvery old.
func (a *authority) current() *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) >= lookEvery {
		a.lookLocked()
	}
	return a.roots
}

func (a *authority) problem() error {
	a.current()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

var errUnnamed = errors.New("the certificate's subject has no common name that is valid UTF-8")

// identify verifies the certificates of a connection, the client's first. The user is the one that
// the API server makes of them. The end is that of the certificate or an authority above it.
func (a *authority) identify(presented []*x509.Certificate) (user authenticationv1.UserInfo, ends time.Time, err error) {
	above := x509.NewCertPool()
	for _, certificate := range presented[1:] {
		above.AddCert(certificate)
	}
	chains, err := presented[0].Verify(x509.VerifyOptions{
		Roots: a.current(), Intermediates: above, CurrentTime: time.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return user, ends, err
	}
	for _, certificate := range chains[0] {
		// It is still valid at NotAfter itself.
		if end := certificate.NotAfter.Add(time.Nanosecond); ends.IsZero() || end.Before(ends) {
			ends = end
		}
	}
	user, err = userOf(chains[0][0])
	return user, ends, err
}

// userOf is the user that the API server makes of a verified certificate.
func userOf(c *x509.Certificate) (user authenticationv1.UserInfo, err error) {
	if c.Subject.CommonName == "" || !valid(c.Subject.CommonName) || !valid(c.Subject.Organization...) {
		return user, errUnnamed
	}
	print := sha256.Sum256(c.Raw)
	user = authenticationv1.UserInfo{
		Username: c.Subject.CommonName, Groups: c.Subject.Organization,
		Extra: map[string]authenticationv1.ExtraValue{credentialID: {"X509SHA256=" + hex.EncodeToString(print[:])}},
	}
	for _, name := range c.Subject.Names {
		if !name.Type.Equal(asn1.X509UID()) {
			continue
		}
		uid, ok := name.Value.(string)
		if !ok || uid == "" || user.UID != "" || !valid(uid) {
			return user, errors.New("the certificate's subject has no single UID that is a text")
		}
		user.UID = uid
	}
	return user, nil
}
