package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
)

// connection is the transport for the settings, made anew after a change of one of their files. The
// files are read before each request, like a token: that costs little beside a request and needs no
// watch.
type connection struct {
	transport *http.Transport
	made      [sha256.Size]byte // hash of the contents of the files
}

// current is the transport for the next request. If a file cannot be read, requests fail: its old
// contents may include a certificate that has since been revoked.
func (c *connection) current(s Settings) (http.RoundTripper, error) {
	var config tls.Config
	sum := sha256.New()
	if s.CAFile != "" {
		authorities, err := ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("the CA file %s holds no certificate in PEM", s.CAFile)
		}
		sum.Write(authorities)
	}
	if s.CertificateFile != "" {
		certificate, err := ReadFile(s.CertificateFile)
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		key, err := ReadFile(s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("the key of the client certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate %s and its key %s: %w", s.CertificateFile, s.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
		sum.Write(certificate)
		sum.Write(key)
	}
	if now := [sha256.Size]byte(sum.Sum(nil)); c.transport == nil || now != c.made {
		c.close()
		c.transport, c.made = newTransport(s.Socket, &config), now
	}
	return c.transport, nil
}

// newTransport is the default transport, changed by the settings.
func newTransport(socket string, config *tls.Config) *http.Transport {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = usual.Clone()
	}
	transport.TLSClientConfig = config
	if socket != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	return transport
}

func (c *connection) close() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}
