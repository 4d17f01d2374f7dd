package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// gate keeps out the pages that a browser on this machine shows: a page can send requests to
// loopback addresses, and by a DNS name of its own it can read the answers.
type gate struct {
	origins http.CrossOriginProtection

	mu    sync.RWMutex
	hosts map[string]bool // named by AllowHosts
}

// AllowHosts has the server answer to more names: those of a Service or a proxy before it, without
// a port. "*" stands for all names; that is safe only behind authentication. By default the server
// answers to localhost, to loopback addresses, and to the address at which a connection has reached
// it.
func (s *Server) AllowHosts(hosts ...string) error {
	for _, host := range hosts {
		if host == "*" {
			continue
		}
		if u, err := url.Parse("//" + host); err != nil || u.Host != host || hostname(host) != strings.Trim(host, "[]") || host == "" {
			return fmt.Errorf("apiserver: AllowHosts: %q is not a host: give a name or an address, without a port", host)
		}
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.gate.hosts == nil {
		s.gate.hosts = map[string]bool{}
	}
	for _, host := range hosts {
		s.gate.hosts[normal(strings.Trim(host, "[]"))] = true
	}
	return nil
}

// AllowOrigins lets web pages of other origins write and open web sockets, such as
// "http://localhost:5173" of a development server that passes requests on. By default only pages of
// the server's own origin do.
func (s *Server) AllowOrigins(origins ...string) error {
	for _, origin := range origins {
		if err := s.gate.origins.AddTrustedOrigin(origin); err != nil {
			return fmt.Errorf("apiserver: AllowOrigins: %w: give one such as http://localhost:5173", err)
		}
	}
	return nil
}

// Guard has a handler beside the server answer to the same hosts and origins, such as one of
// metrics. The server guards itself.
func (s *Server) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.gate.check(r); err != nil {
			RespondError(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// check refuses requests that no client of the server's sends: 403.
func (g *gate) check(r *http.Request) error {
	if !g.answersTo(r.Context(), r.Host) {
		return forbidden(fmt.Sprintf("the server does not answer to the host %q: ask for an address that it listens on, "+
			"or name the host with AllowHosts, or tributary serve --host", r.Host))
	}
	judged := r
	if isWebSocket(r) { // a page may read one, whatever its origin
		judged = &http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}
	}
	if err := g.origins.Check(judged); err != nil {
		return forbidden("a web page of another origin may neither write nor open a web socket here: " +
			"name its origin with AllowOrigins, or tributary serve --allow-origin")
	}
	return nil
}

func forbidden(message string) error {
	return apierror.Refused(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

// answersTo reports whether a request names a host of this server. No name of an attacker's gets
// through, even if it resolves to one of our addresses.
func (g *gate) answersTo(ctx context.Context, hostPort string) bool {
	here, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || here.Network() != "tcp" && here.Network() != "udp" {
		return true // a call of this process, a pipe or a socket file: no browser reaches them
	}
	host := hostname(hostPort)
	if host == "" || isLocalhost(host) { // browsers name a host, HTTP/1.0 does not
		return true
	}
	if address, err := netip.ParseAddr(host); err == nil && (address.IsLoopback() || address.Unmap() == addressOf(here)) {
		return true
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.hosts) > 0 && (g.hosts["*"] || g.hosts[normal(host)])
}

// isLocalhost reports whether a name is that of this machine for every browser (RFC 6761, 6.3).
func isLocalhost(host string) bool {
	host = normal(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addressOf is the IP address of one end of a connection, without a zone: a Host header has none.
func addressOf(end net.Addr) netip.Addr {
	var here netip.AddrPort
	if tcp, ok := end.(*net.TCPAddr); ok {
		here = tcp.AddrPort()
	} else {
		here, _ = netip.ParseAddrPort(end.String()) // else no address equals it
	}
	return here.Addr().Unmap().WithZone("")
}

// hostname is a Host header without its port and brackets.
func hostname(hostPort string) string {
	if end := strings.LastIndexByte(hostPort, ']'); end > 0 && hostPort[0] == '[' {
		return hostPort[1:end]
	}
	if colon := strings.LastIndexByte(hostPort, ':'); colon >= 0 && strings.IndexByte(hostPort, ':') == colon {
		return hostPort[:colon]
	}
	return hostPort
}

// normal is the one form of a host: DNS ignores case, and a dot at the end.
func normal(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
