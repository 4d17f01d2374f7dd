package cluster

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/server/apiserver"
)

// Counts are what a cluster has been asked. A probe lists metadata.
type Counts struct {
	Connections harness.Counts

	lists, probes, watches, reviews, other, open, kubelet atomic.Int64
}

// Figures has requests by their kinds, watches and connections that are open now, and the bytes
// that were sent.
func (c *Counts) Figures() harness.Figures {
	f := harness.Figures{}
	for name, count := range map[string]*atomic.Int64{
		"lists": &c.lists, "probes": &c.probes, "watches": &c.watches, "reviews": &c.reviews, "other": &c.other,
		"kubelet": &c.kubelet, "open": &c.open, "connections": &c.Connections.Open, "sent": &c.Connections.Bytes,
	} {
		f[name] = float64(count.Load())
	}
	f["requests"] = f["lists"] + f["probes"] + f["watches"] + f["reviews"] + f["other"]
	return f
}

// Since has the differences of what only grows, and the rest as it is now.
func Since(now, before harness.Figures) harness.Figures {
	f := now.Since(before)
	for name, value := range now {
		if goesDown[name[strings.LastIndexByte(name, '.')+1:]] {
			f[name] = value
		}
	}
	return f
}

var goesDown = map[string]bool{"open": true, "connections": true, "rss": true, "peak": true, "heap": true, "stacks": true, "goroutines": true}

func (c *Counts) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, known := apiserver.ParseTarget(r.URL.Path)
		switch {
		case strings.HasSuffix(r.URL.Path, "reviews"):
			c.reviews.Add(1)
			review(w, r)
			return
		case r.URL.Query().Get("watch") != "":
			c.watches.Add(1)
			c.open.Add(1)
			defer c.open.Add(-1)
		case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"):
			c.probes.Add(1)
		case known && target.Name == "" && r.Method == http.MethodGet:
			c.lists.Add(1)
		default:
			c.other.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// review permits everything to everybody, whose names are their tokens.
func review(w http.ResponseWriter, r *http.Request) {
	var review struct {
		metav1.TypeMeta
		Spec   struct{ Token string }
		Status any
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	if token := review.Spec.Token; token != "" {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:team:" + token, UID: token,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"},
			Extra:  map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {token}},
		}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": review.Kind, "apiVersion": review.APIVersion, "status": review.Status})
}
