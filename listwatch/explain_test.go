package listwatch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
)

// The sentences for each cause are in the reflector's TestEachCauseHasAClassAndASentence.

// TestTheCauseIsInSight: the cause comes at once, and no query before it.
func TestTheCauseIsInSight(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close()) // no server listens there
	yes := true
	request := metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		Continue: strings.Repeat("hunter2", 100),
	}
	config := &rest.Config{Host: "http://admin:hunter2@" + address + "/prefix", QPS: -1}
	selector := listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "node-1"))
	pods := clientset(t, config).CoreV1().Pods("shop")
	for name, lw := range map[string]*listwatch.ListWatch[*corev1.Pod]{
		"client":    listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods", listwatch.InNamespace("shop"), selector),
		"functions": listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, selector),
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := readWatch(lw.Watch(t.Context(), request))
			_, _, listErrs := readList(lw.List(t.Context(), request))
			for _, err := range append(errs, listErrs...) {
				requireSilent(t, err)
				_, cause, found := strings.Cut(err.Error(), `: Get "http://`+address+`/prefix/api/v1/namespaces/shop/pods": `)
				require.True(t, found, "%v", err)
				require.Equal(t, "dial tcp "+address+": connect: connection refused", cause)
				var operation *net.OpError
				require.ErrorAs(t, err, &operation, "types stay")
			}
		})
	}
}

// TestErrorsOfTokenServersAreCut: golang.org/x/oauth2 puts a token server's answer into its error.
func TestErrorsOfTokenServersAreCut(t *testing.T) {
	config := serve(t, answer(http.StatusOK, jsonType, nil))
	config.WrapTransport = func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("oauth2: cannot fetch token: 400 Bad Request\nResponse: {\"refresh_token\":\"hunter2\"}")
		})
	}
	for _, err := range bothErrors(t, restClient(t, config, v1Version)) {
		requireSilent(t, err)
		require.ErrorContains(t, err, "no credentials, so nothing was sent: oauth2: cannot fetch token: 400 Bad Request: "+
			"log in again, or look at the server that issues the tokens")
	}
}

// TestTheClientsOwnTimeoutIsNamed: net/http ends every request after rest.Config.Timeout, a watch
// too.
func TestTheClientsOwnTimeoutIsNamed(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	config := pods.Server().Listen()
	config.Timeout = 50 * time.Millisecond
	lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
	_, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "watch pods: the client's own Timeout of 50ms (rest.Config.Timeout) ended the watch: "+
		"leave it zero, and bound other requests by their contexts: ")
	require.Equal(t, reflector.Disconnected, reflector.Classify(errs[0]))

	pods.Mute(listwatchtest.On(listwatchtest.List), listwatchtest.Times(2))
	_, _, errs = readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "list pods: the client's own Timeout of 50ms (rest.Config.Timeout) ended the list: ")

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, errs = readList(lw.List(ctx, metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], context.DeadlineExceeded)
	require.NotContains(t, errs[0].Error(), "rest.Config.Timeout")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestAddressesOfRESTClients: client-go accepts a host and a port, and quotes any other address
// with its password.
func TestAddressesOfRESTClients(t *testing.T) {
	const noURL = "the address (rest.Config.Host) is no URL: write https://, host and port"
	const noScheme = "the address (rest.Config.Host) has a path and no scheme: begin it with https:// or http://"
	for address, want := range map[string]string{
		"": "", "localhost": "", "localhost:6443": "", "127.0.0.1": "", "[::1]:6443": "", "https://api.example/prefix": "", "localhost:6443/": "",
		"https://admin:hunter2@exa mple": noURL, "https://admin:hunter2/hunter2@example": noURL, "https:///hunter2": noURL, "http://": noURL,
		"exa mple:hunter2":       noURL,
		"localhost:6443/hunter2": noScheme, "api.example/hunter2": noScheme, "//admin:hunter2@api.example/": noScheme,
	} {
		_, err := listwatch.NewRESTClient(&rest.Config{Host: address}, v1Version)
		if want == "" {
			require.NoError(t, err, "%q", address)
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("listwatch: client for v1: %s", want), "%q", address)
	}
}
