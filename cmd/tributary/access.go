package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/server/apiserver"
)

// listening are the flags of a server that clients reach.
type listening struct {
	listen   string
	tlsCert  string
	tlsKey   string
	insecure bool
	folder   string
	hosts    []string
	origins  []string
	status   string
}

func (l *listening) register(flags *flag.FlagSet) {
	flags.StringVar(&l.listen, "listen", "127.0.0.1:8080", "host:`port` to serve on; port 0 takes a free one")
	flags.StringVar(&l.tlsCert, "tls-cert-file", "", "`file` with the server's certificate, in place of one that the server makes")
	flags.StringVar(&l.tlsKey, "tls-private-key-file", "", "`file` with the key of --tls-cert-file")
	flags.BoolVar(&l.insecure, "insecure", false, "serve every program of this machine: without a token, and without TLS unless --tls-cert-file is given")
	flags.StringVar(&l.folder, "access", "", "`folder` of the files for clients: the certificate and its authority, and serve's token and kubeconfig "+
		"(default: access in --data; else a new one that is removed at the end)")
	list(flags, &l.hosts, "host", "another `name` or address by which clients reach the server, such as that of a Service; repeatable")
	list(flags, &l.origins, "allow-origin", "`URL` of a web page's origin, such as http://localhost:5173, that may write and open web sockets; repeatable")
	flags.StringVar(&l.status, "status", "", "`address` of a page with the state of all collections, such as localhost:8081")
}

// check refuses a server that a network could reach and that asks for no token.
func (l listening) check() error {
	host, _, err := net.SplitHostPort(l.listen)
	switch {
	case (l.tlsCert == "") != (l.tlsKey == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file belong together: give both")
	case err != nil:
		return fmt.Errorf("--listen %s: %w: give host:port, such as 127.0.0.1:8080", l.listen, err)
	case !l.insecure:
		return nil
	case l.folder != "":
		return errors.New("--access is for files that --insecure does without: leave out one of them")
	case !loopback(host):
		return fmt.Errorf("--listen %s would let everybody on the network read and write, since --insecure asks for no token: "+
			"leave out --insecure, and give clients their credentials; or listen on 127.0.0.1", l.listen)
	}
	return nil
}

// loopback reports whether a host of --listen is reached from this machine alone.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// access has the certificate and the token that let clients in.
type access struct {
	folder      string // empty: nothing is kept in files
	temporary   bool
	certificate *keptCertificate // nil: without TLS
	authority   []byte           // PEM, for clients
	// authorityFile has the authority; empty without TLS.
	authorityFile string
	token         string // empty: no client needs one
}

// newAccess reads or makes the certificate and the token that the flags ask for.
func newAccess(o options) (a *access, err error) {
	kept := ""
	if o.backup == "" && len(o.endpoints) == 0 {
		kept = o.data
	}
	return o.newAccess(kept, (*access).ownToken)
}

// newAccess reads or makes the certificate that the flags ask for, and whatever else clients need.
// The files are in a folder of data, or in a temporary one if that is empty.
func (l listening) newAccess(data string, more func(*access) error) (a *access, err error) {
	a = &access{folder: l.folder}
	if l.tlsCert != "" {
		if err := a.useCertificate(l.tlsCert, l.tlsKey); err != nil {
			return nil, fmt.Errorf("TLS for --listen: %w", err)
		}
	}
	if l.insecure {
		return a, nil
	}
	switch {
	case a.folder != "":
	case data != "":
		a.folder = filepath.Join(data, "access")
	default:
		if a.folder, err = os.MkdirTemp("", "tributary-"); err != nil {
			return nil, fmt.Errorf("make a folder for the files of clients: %w: give one with --access", err)
		}
		a.temporary = true
	}
	if a.folder, err = filepath.Abs(a.folder); err == nil {
		err = os.MkdirAll(a.folder, 0o700)
	}
	if err == nil && a.certificate == nil {
		err = a.ownCertificate(l.certificateHosts())
	}
	if err == nil {
		err = more(a)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", a.folder, err), a.close())
	}
	return a, nil
}

// close removes files that are of use no more.
func (a *access) close() error {
	if !a.temporary {
		return nil
	}
	return os.RemoveAll(a.folder)
}

// ownToken reads the token, or makes one.
func (a *access) ownToken() error {
	path := filepath.Join(a.folder, "token")
	text, err := readPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(rand.Text())
		err = writePrivate(path, text)
	}
	if err != nil {
		return err
	}
	if a.token = strings.TrimSpace(string(text)); len(a.token) < 16 || strings.ContainsFunc(a.token, notInToken) {
		return fmt.Errorf("%s has no token of 16 or more letters and digits: remove it, and the next start makes a new one", path)
	}
	return nil
}

func notInToken(r rune) bool { return r <= ' ' || r > '~' }

// writeKubeconfig writes the server, its authority and the token for kubectl, and returns the path.
func (a *access) writeKubeconfig(url string) (path string, err error) {
	const name = "tributary"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: a.authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: a.token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: metav1.NamespaceDefault}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	path = filepath.Join(a.folder, "kubeconfig")
	return path, writePrivate(path, text)
}

// protect asks clients for the token. Health checks need none, as on kube-apiserver.
func (a *access) protect(next http.Handler) http.Handler {
	if a.token == "" {
		return next
	}
	want := sha256.Sum256([]byte(a.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if apiserver.IsHealthCheck(r) || strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		apiserver.RespondError(w, apierrors.NewUnauthorized(
			"the server asks for the token that is in its kubeconfig: its path was printed at the start"))
	})
}

// welcome tells the server the names that the flags give it.
func (l listening) welcome(server *apiserver.Server) error {
	hosts := l.hosts
	if host, _, _ := net.SplitHostPort(l.listen); host != "" {
		hosts = append([]string{host}, hosts...)
	}
	if err := server.AllowHosts(hosts...); err != nil {
		return fmt.Errorf("--host: %w", err)
	}
	if err := server.AllowOrigins(l.origins...); err != nil {
		return fmt.Errorf("--allow-origin: %w", err)
	}
	return nil
}

// web is the HTTP server, and a function that serves a listener. HTTP/2 comes with TLS, as in
// net/http. The handler is the server's, or one around it.
func (a *access) web(handler http.Handler) (web *http.Server, begin func(net.Listener) error) {
	web = &http.Server{Handler: a.protect(handler), ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience}
	if a.certificate == nil {
		return web, web.Serve
	}
	web.TLSConfig = &tls.Config{GetCertificate: a.certificate.get}
	web.HTTP2 = &http.HTTP2Config{WriteByteTimeout: silencePatience}
	return web, func(l net.Listener) error { return web.ServeTLS(l, "", "") }
}

// kubectl is the beginning of a command that reaches the server.
func (a *access) kubectl(url string) (string, error) {
	if a.token == "" {
		return "kubectl -s " + url, nil
	}
	path, err := a.writeKubeconfig(url)
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return "kubectl --kubeconfig " + path, nil
}

// reachable is the URL of a listener for clients on this machine.
func (a *access) reachable(listener net.Listener) string {
	scheme := "http://"
	if a.certificate != nil {
		scheme = "https://"
	}
	address := listener.Addr().String()
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	return scheme + address
}
