package main

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/ownfile"
)

const (
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	clockSkew   = time.Hour // of clients
)

// keptCertificate is a certificate in files, which are read again when they change.
type keptCertificate struct {
	certificateFile, keyFile string
	renew                    func() error // writes new files; nil for an operator's certificate

	mu      sync.Mutex // guards the next fields
	looked  time.Time
	renewed time.Time // when that was tried
	current *tls.Certificate
	problem string // why the files cannot be used; empty if they can
}

// lookEvery is how often the files are read, at most, and renewEvery is how often a certificate
// that is about to end is made anew, at most.
const (
	lookEvery  = time.Second
	renewEvery = time.Hour
)

// get is for [tls.Config.GetCertificate].
func (k *keptCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) >= lookEvery {
		k.noteLocked(k.lookLocked())
	}
	return k.current, nil
}

// lookLocked reads the files. The last certificate that could be used stays.
func (k *keptCertificate) lookLocked() (err error) {
	k.looked = time.Now()
	if k.renew != nil && k.current != nil && isNearlyOver(k.current.Leaf) && time.Since(k.renewed) >= renewEvery {
		k.renewed = k.looked
		err = k.renew()
	}
	read, unread := tls.LoadX509KeyPair(k.certificateFile, k.keyFile)
	if unread == nil {
		k.current = &read
	}
	return errors.Join(err, unread)
}

func (k *keptCertificate) noteLocked(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != k.problem {
		klog.Background().Error(err, "The server goes on with its former certificate", "file", k.certificateFile)
	}
	k.problem = text
}

// useCertificate takes one that the operator has made. Clients are told to trust it alone.
func (a *access) useCertificate(certificateFile, keyFile string) (err error) {
	kept := &keptCertificate{certificateFile: certificateFile, keyFile: keyFile}
	if err := kept.lookLocked(); err != nil {
		return err
	}
	a.certificate, a.authorityFile = kept, certificateFile
	a.authority, err = os.ReadFile(certificateFile)
	return err
}

// certificateHosts are the names by which clients reach the server.
func (l listening) certificateHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	host, _, _ := net.SplitHostPort(l.listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		addresses, _ := net.InterfaceAddrs() // those that are missing can be given as --host
		for _, address := range addresses {
			if network, ok := address.(*net.IPNet); ok {
				hosts = append(hosts, network.IP.String())
			}
		}
	} else {
		hosts = append(hosts, host)
	}
	for _, host := range l.hosts {
		if host != "*" {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// ownCertificate reads the certificate, or makes one if there is none for these hosts, or its time
// is nearly over. It makes another one in time.
func (a *access) ownCertificate(hosts []string) error {
	kept := &keptCertificate{certificateFile: filepath.Join(a.folder, "tls.crt"), keyFile: filepath.Join(a.folder, "tls.key")}
	a.certificate, a.authorityFile = kept, filepath.Join(a.folder, "ca.crt")
	kept.renew = func() error {
		_, err := makeFiles(kept, a.authorityFile, hosts)
		return err
	}
	err := checkPrivate(kept.keyFile)
	if err == nil {
		a.authority, err = os.ReadFile(a.authorityFile)
	}
	if err == nil {
		if err = kept.lookLocked(); err != nil {
			err = fmt.Errorf("%s: %w", kept.certificateFile, err)
		}
	}
	if err == nil && fits(kept.current.Leaf, hosts) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: remove the folder, and the next start makes a new certificate, token and kubeconfig", err)
	}
	if a.authority, err = makeFiles(kept, a.authorityFile, hosts); err != nil {
		return err
	}
	kept.current = nil // else it could be renewed at once
	return kept.lookLocked()
}

// makeFiles writes a new certificate, its key and its authority. The authority stays if its time
// allows, so that clients need no other.
func makeFiles(kept *keptCertificate, authorityFile string, hosts []string) (authority []byte, err error) {
	authorityKeyFile := strings.TrimSuffix(authorityFile, ".crt") + ".key"
	signer, err := readAuthority(authorityFile, authorityKeyFile)
	if err != nil || time.Until(signer.pair.Leaf.NotAfter) < certificateLife {
		if signer, err = makeAuthority(); err != nil {
			return nil, err
		}
	}
	certificate, key, err := signer.sign(hosts)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		path string
		text []byte
	}{{authorityFile, signer.text}, {authorityKeyFile, signer.keyText}, {kept.keyFile, key}, {kept.certificateFile, certificate}} {
		if err := writePrivate(file.path, file.text); err != nil {
			return nil, err
		}
	}
	return signer.text, nil
}

// fits reports whether clients of all hosts can be served with a certificate, and for long enough.
func fits(leaf *x509.Certificate, hosts []string) bool {
	unnamed := slices.ContainsFunc(hosts, func(host string) bool { return leaf.VerifyHostname(host) != nil })
	return !unnamed && !isNearlyOver(leaf)
}

func isNearlyOver(leaf *x509.Certificate) bool { return time.Until(leaf.NotAfter) <= renewBefore }

// authority signs the certificates of this server alone. Clients that do not take a certificate for
// its own authority take this.
type authority struct {
	pair          tls.Certificate
	text, keyText []byte // in PEM
}

func newAuthority(text, keyText []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(text, keyText)
	return &authority{pair, text, keyText}, err
}

func readAuthority(certificateFile, keyFile string) (*authority, error) {
	keyText, err := readPrivate(keyFile)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(certificateFile)
	if err != nil {
		return nil, err
	}
	return newAuthority(text, keyText)
}

// makeAuthority makes one for ten years.
func makeAuthority() (*authority, error) {
	key, keyText, err := makeKey()
	if err != nil {
		return nil, err
	}
	config := cert.Config{CommonName: "tributary-authority", NotBefore: time.Now().Add(-clockSkew)}
	certificate, err := cert.NewSelfSignedCACert(config, key)
	if err != nil {
		return nil, err
	}
	return newAuthority(encoded(certificate.Raw), keyText)
}

// sign makes a certificate and its key.
func (a *authority) sign(hosts []string) (certificate, key []byte, err error) {
	begin := time.Now().Add(-clockSkew)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(begin.UnixNano() + 1), Subject: pkix.Name{CommonName: "tributary"},
		NotBefore: begin, NotAfter: begin.Add(certificateLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	own, key, err := makeKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.pair.Leaf, own.Public(), a.pair.PrivateKey)
	return encoded(der), key, err
}

func makeKey() (key crypto.Signer, text []byte, err error) {
	if text, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return nil, nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	key, _ = parsed.(crypto.Signer)
	return key, text, err
}

func encoded(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate})
}

// readPrivate reads a file that its owner alone can read.
func readPrivate(path string) ([]byte, error) {
	if err := checkPrivate(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func checkPrivate(path string) error {
	info, err := os.Stat(path)
	// Windows has no such modes.
	if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err = fmt.Errorf("%s can be read by other users (mode %#o), who may know it: remove it, and the next start makes a new one",
			path, info.Mode().Perm())
	}
	return err
}

// writePrivate replaces a file as a whole; its owner alone can read it. The error names it.
func writePrivate(path string, data []byte) error {
	if err := ownfile.Replace(path, data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
