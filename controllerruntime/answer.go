package controllerruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// answer takes the server's answer to a request with the answer in its context.
// controller-runtime's client drops the answer to a deletion, and no other place has the state of
// the object then.
type answer struct{ body []byte }

type answerKey struct{}

func (a *answer) listen(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// listening fills the answers of a client's requests.
func listening(of *http.Client) *http.Client {
	client := *of
	next := of.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = listener{next}
	return &client
}

type listener struct{ next http.RoundTripper }

// RoundTrip asks for JSON if the answer is listened to, so that no other format must be known here.
func (l listener) RoundTrip(request *http.Request) (*http.Response, error) {
	a, ok := request.Context().Value(answerKey{}).(*answer)
	if !ok {
		return l.next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", "application/json")
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	a.body, err = io.ReadAll(response.Body)
	if closing := response.Body.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(a.body))
	return response, nil
}

// WrappedRoundTripper returns the transport beneath, as client-go's wrappers do.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.next }

// answered is an object, a Status or a list, as far as it is of interest.
type answered struct {
	metav1.PartialObjectMetadata
	Details struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
	Items []metav1.PartialObjectMetadata `json:"items"`
}

func (a *answer) read() (read answered, err error) {
	if err = json.Unmarshal(a.body, &read); err != nil {
		err = fmt.Errorf("read the answer: %w", err)
	}
	return read, err
}
