package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
	"github.com/tributary-go/tributary/store"
)

// kubeletHTTP reads a URL as the kubelet does. Its apparent mistakes are the kubelet's, kept
// on purpose: see LikeKubelet.
type kubeletHTTP struct {
	address  string
	settings access.Settings
	keeper   access.Keeper
	client   *access.Client
	decoder  manifest.Decoder
	sink     *Sink
	// last is the hash of the last body, good or bad, that was not empty: an equal body is no news.
	last     [sha256.Size]byte
	warnings []error // of that body
}

func newKubeletHTTP(address string, options []static.Option, sink *Sink) *kubeletHTTP {
	k := &kubeletHTTP{address: address, settings: settingsOf(options), sink: sink}
	k.decoder = manifest.Decoder{
		Node: sink.Node(), Source: HTTPSource, LikeKubelet: true, Release: sink.release,
		Warn: func(err *manifest.Error) { k.warnings = append(k.warnings, unknownField(err)) },
	}
	return k
}

func (k *kubeletHTTP) report() Report { return k.keeper.Read() }

func (k *kubeletHTTP) run(ctx context.Context, _ *Sink) error {
	client, err := access.NewClient(k.address, k.settings)
	if err != nil {
		return err
	}
	defer client.Close()
	k.client = client
	client.FollowAnywhere()
	k.keeper.StaleAfter(k.settings.Stale())
	k.keeper.Mode(fmt.Sprintf("poll every %s", k.settings.Every))
	for {
		if hand, err := k.poll(ctx); ctx.Err() == nil {
			var problems []error
			if err != nil {
				problems = []error{fmt.Errorf("%s: %w", client.Shown(), err)}
			}
			k.keeper.Hand(k.sink.Log().WithValues("url", client.Shown()), access.Round{Problems: problems, Warnings: k.warnings, Contact: err == nil}, hand)
		}
		period, stop := k.settings.Pause()
		select {
		case <-period:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// poll reads the URL once. hand sets a new state, if there is one, also after an error.
func (k *kubeletHTTP) poll(ctx context.Context) (hand func(), err error) {
	hand = func() {}
	body, err := k.get(ctx)
	switch sum := sha256.Sum256(body); {
	case err != nil:
		return hand, err
	case len(body) == 0:
		// which the next body is not compared with
		return func() { k.sink.Set(Pods{}) }, access.Mark("undecodable", errors.New("the body is empty"))
	case sum == k.last:
		return hand, nil
	default:
		k.last = sum
	}
	k.warnings = nil
	pods, rejected := k.decoder.Decode(k.client.Shown(), body)
	if len(rejected) > 0 {
		k.warnings = nil
		return hand, rejected[0].Err
	}
	var all store.Indexer[*corev1.Pod]
	// it cannot fail: a manifest's pods have names
	_ = all.Replace(store.Items(pods...), store.At(""))
	return func() { k.sink.setInOrder(all.Snapshot(), pods) }, nil
}

func (k *kubeletHTTP) get(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, k.settings.Timeout)
	defer cancel()
	response, err := k.client.Get(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := k.client.Body(response)
	if err == nil && response.StatusCode != http.StatusOK {
		err = k.client.Refusal(response.StatusCode, bytes.NewReader(body))
	}
	return body, err
}
