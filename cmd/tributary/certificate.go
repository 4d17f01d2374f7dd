package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
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
	"time"
)

const (
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced, at a start.
	renewBefore = 30 * 24 * time.Hour
	clockSkew   = time.Hour // of clients
)

// useCertificate takes one that the operator has made. Clients are told to trust it alone.
func (a *access) useCertificate(certificateFile, keyFile string) error {
	certificate, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		return err
	}
	a.certificate = &certificate
	a.authority, err = os.ReadFile(certificateFile)
	a.authorityFile = certificateFile
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
// is nearly over.
func (a *access) ownCertificate(hosts []string) error {
	certificateFile, keyFile := filepath.Join(a.folder, "tls.crt"), filepath.Join(a.folder, "tls.key")
	authorityFile := filepath.Join(a.folder, "ca.crt")
	a.authorityFile = authorityFile
	key, err := readPrivate(keyFile)
	if err == nil {
		var certificate tls.Certificate
		if certificate, a.authority, err = readCertificate(certificateFile, authorityFile, key); err == nil && fits(certificate.Leaf, hosts) {
			a.certificate = &certificate
			return nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: remove the folder, and the next start makes a new certificate, token and kubeconfig", err)
	}
	made, err := makeCertificate(hosts)
	if err != nil {
		return err
	}
	for path, text := range map[string][]byte{certificateFile: made.certificate, keyFile: made.key, authorityFile: made.authority} {
		if err := writePrivate(path, text); err != nil {
			return err
		}
	}
	certificate, err := tls.X509KeyPair(made.certificate, made.key)
	a.certificate, a.authority = &certificate, made.authority
	return err
}

func readCertificate(certificateFile, authorityFile string, key []byte) (certificate tls.Certificate, authority []byte, err error) {
	text, err := os.ReadFile(certificateFile)
	if err == nil {
		authority, err = os.ReadFile(authorityFile)
	}
	if err != nil {
		return certificate, nil, err
	}
	if certificate, err = tls.X509KeyPair(text, key); err != nil {
		return certificate, nil, fmt.Errorf("%s: %w", certificateFile, err)
	}
	return certificate, authority, nil
}

// fits reports whether clients of all hosts can be served with a certificate, and for long enough.
func fits(leaf *x509.Certificate, hosts []string) bool {
	unnamed := slices.ContainsFunc(hosts, func(host string) bool { return leaf.VerifyHostname(host) != nil })
	return !unnamed && time.Until(leaf.NotAfter) > renewBefore
}

// madeCertificate is in PEM.
type madeCertificate struct{ authority, certificate, key []byte }

// makeCertificate makes a certificate, and an authority that has signed this one alone: its key is
// forgotten. Clients that do not take a certificate for its own authority take this.
func makeCertificate(hosts []string) (made madeCertificate, err error) {
	begin := time.Now().Add(-clockSkew)
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return made, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return made, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(begin.UnixNano()), Subject: pkix.Name{CommonName: "tributary, authority"},
		NotBefore: begin, NotAfter: begin.Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return made, err
	}
	// Parsed, it has its key's identifier.
	if authority, err = x509.ParseCertificate(authorityDER); err != nil {
		return made, err
	}
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
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return made, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return made, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return madeCertificate{block("CERTIFICATE", authorityDER), block("CERTIFICATE", leafDER), block("PRIVATE KEY", keyDER)}, nil
}

// readPrivate reads a file that its owner alone can read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no such modes
		return nil, fmt.Errorf("%s can be read by other users (mode %#o), who may know it: remove it, and the next start makes a new one",
			path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}

// writePrivate replaces a file as a whole; its owner alone can read it. It replaces a link at the
// path and does not follow it.
func writePrivate(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
