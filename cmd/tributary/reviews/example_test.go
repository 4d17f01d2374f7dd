package reviews_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// A copy of pods is read by the clients that may read them in the cluster.
func Example() {
	cluster := newCluster() // in a program: the API server that the copy is of
	cluster.allows = func(question authorizationv1.SubjectAccessReviewSpec) (bool, string) {
		return question.User == "alice", ""
	}
	upstream := httptest.NewServer(cluster)
	defer upstream.Close()

	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	apiserver.Serve(server, builtin.Pods())
	access, err := reviews.New(&rest.Config{Host: upstream.URL})
	if err != nil {
		panic(err)
	}
	web := httptest.NewServer(access.Handler(server))
	defer web.Close()

	for _, token := range []string{"alice's", "bob's", "eve's"} {
		request, err := http.NewRequest(http.MethodGet, web.URL+"/api/v1/namespaces/n/pods", nil)
		if err != nil {
			panic(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := web.Client().Do(request)
		if err != nil {
			panic(err)
		}
		var status metav1.Status
		_ = json.NewDecoder(answer.Body).Decode(&status) // a list has no reason
		_ = answer.Body.Close()
		fmt.Printf("%s %q\n", token, status.Reason)
	}
	// Output:
	// alice's ""
	// bob's "Forbidden"
	// eve's "Unauthorized"
}
