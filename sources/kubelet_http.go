package sources

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// kubeletHTTP reads a URL as the kubelet 1.36 does. What looks like a mistake here is one of the kubelet's, kept on
// purpose: see LikeKubelet.
type kubeletHTTP struct {
	*httpSource
	decoder manifest.Decoder
	sink    *Sink
	// last is of the last body that was not empty, good or not: the same one again is no news.
	last [sha256.Size]byte
}

func newKubeletHTTP(h *httpSource, sink *Sink) *kubeletHTTP {
	h.client.CheckRedirect = nil // ten, to anywhere
	decoder := manifest.Decoder{Node: sink.Node(), Source: HTTPSource, LikeKubelet: true}
	return &kubeletHTTP{httpSource: h, decoder: decoder, sink: sink}
}

func (k *kubeletHTTP) run(ctx context.Context) error {
	k.keeper.mode(fmt.Sprintf("poll every %s", k.options.every))
	period, stop := k.options.period()
	defer stop()
	for {
		if err := k.poll(ctx); ctx.Err() == nil {
			var problems []error
			if err != nil {
				problems = []error{fmt.Errorf("%s: %w", k.entry.path, err)}
			}
			k.keeper.round(k.sink.Log().WithValues("url", k.entry.path), problems, err == nil)
		}
		select {
		case <-period:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *kubeletHTTP) poll(ctx context.Context) error {
	body, err := k.get(ctx)
	switch sum := sha256.Sum256(body); {
	case err != nil:
		return err
	case len(body) == 0:
		k.sink.Set(Pods{}) // but it is not what the next body is compared with
		return errors.New("the body is empty")
	case sum == k.last:
		return nil
	default:
		k.last = sum
	}
	pods, rejected := k.decoder.Decode(k.entry.path, body)
	if len(rejected) > 0 {
		return rejected[0].Err
	}
	var all store.Indexer[*corev1.Pod]
	_ = all.Replace(store.Items(pods...), store.At("")) // it cannot fail: a manifest's pods have names
	k.sink.setInOrder(all.Snapshot(), pods)
	return nil
}

func (k *kubeletHTTP) get(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, k.options.timeout)
	defer cancel()
	request, err := k.request(ctx)
	if err != nil {
		return nil, err
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, k.cause(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, manifest.MaxSize))
	switch {
	case err != nil:
		return nil, k.cause(err)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	case len(body) >= manifest.MaxSize:
		return nil, fmt.Errorf("a body of %d MiB or more is not read", manifest.MaxSize>>20)
	}
	return body, nil
}
