package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/ledger"
	"github.com/tributary-go/tributary/sources/static"
)

// Kubelet reads the pods that a kubelet lists at its /pods, such as https://localhost:10250/pods:
// all pods of its node, with their names, UIDs, annotations and status. It makes one request every
// [static.WithInterval] to the kubelet, and none to the API server. Nothing is added, defaulted or
// validated.
//
// A kubelet asks for a bearer token ([static.WithTokenFile]). The owner of the token needs the verb
// get of nodes/pods, or of nodes/proxy if the kubelet lacks the feature gate
// KubeletFineGrainedAuthz, which is on from Kubernetes 1.33. Its certificate is of the cluster's CA
// or its own: [static.WithCA] takes either. The read-only port, if a kubelet has one, asks for
// nothing.
//
// A restarted kubelet lists its static pods alone until it has heard its API server. A list shows
// whether it is of the same kubelet, by [manifest.SeenAnnotation]; a connection does not. If it is,
// a missing pod is gone. Else a missing pod of the API server is kept until two lists with others
// lack it, or for an hour; a static one is kept for [static.WithGrace], which may be zero for
// both. Status names the number of kept pods. A list without a pod of the API server is no proof
// unless its kubelet has listed one before: it is not Ready, and never safe to prune. Nor are the
// pods of another node.
//
// [Sources.Merged] joins these pods with those of an API server: see [StatusHolder]. The kubelet
// takes the status of /pods from the API server, except for static pods. The kubelet's PodsAPI has
// the newest status; the module sources/kubelet reads it. [LikeKubelet] does not apply to it.
func Kubelet(address string, options ...static.Option) Input {
	if address == "" {
		return Input{name: KubeletSource, err: access.ErrNoURL}
	}
	settings := settingsOf(options)
	if err := settings.Validate(); err != nil {
		return Input{name: KubeletSource, err: fmt.Errorf("Kubelet: %w", err)}
	}
	return Custom(&kubeletPods{address: address, settings: settings})
}

// kubeletPods is the source of Kubelet. All but keeper belongs to the goroutine of Run.
type kubeletPods struct {
	address  string
	settings access.Settings
	keeper   access.Keeper

	client   *access.Client
	ledger   *ledger.Ledger
	sink     *Sink
	log      logr.Logger
	told     bool // a state has been set
	failures int  // in a row
}

func (k *kubeletPods) Name() string { return KubeletSource }

// HoldsStatus makes it a StatusHolder.
func (k *kubeletPods) HoldsStatus() {}

func (k *kubeletPods) Report() Report { return k.keeper.Read() }

func (k *kubeletPods) Run(ctx context.Context, sink *Sink) error {
	client, err := access.NewClient(k.address, k.settings)
	if err != nil {
		return err
	}
	defer client.Close()
	k.client, k.sink, k.log = client, sink, sink.Log().WithValues("url", client.Shown())
	k.ledger = ledger.Open(sink.Node(), k.settings.Grace, decodePod)
	k.keeper.StaleAfter(k.settings.Stale())
	k.keeper.Mode(fmt.Sprintf("poll every %s", k.settings.Every))
	for {
		k.poll(ctx)
		pause := k.settings.Every
		if k.failures > 0 {
			pause = access.Backoff(k.failures, k.settings.Every)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// poll asks for one list.
func (k *kubeletPods) poll(ctx context.Context) {
	items, err := k.list(ctx)
	var problems []error
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		k.failures++
		k.ledger.Lost()
		problems = []error{fmt.Errorf("%s: %w", k.client.Shown(), err)}
	default:
		k.failures = 0
		k.ledger.List(items, time.Now())
	}
	round := k.ledger.Round(k.client.Shown(), err == nil)
	round.Problems = append(problems, round.Problems...)
	round.Complete = round.Complete && err == nil
	k.keeper.Hand(k.log, round, func() {
		if err != nil || k.told && !k.ledger.Changed() {
			return
		}
		now, failed := k.ledger.Snapshot()
		if failed != nil {
			k.log.Error(failed, "State is not set") // the ledger refuses the pods that a store does
			return
		}
		k.told = true
		k.sink.Set(now)
	})
	k.log.V(2).Info("Read a kubelet's pods", "pods", len(items))
}

// list makes one request.
func (k *kubeletPods) list(ctx context.Context) (items [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.settings.Timeout)
	defer cancel()
	response, err := k.client.Get(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, k.refusal(response)
	}
	body, err := k.client.Body(response)
	if err != nil {
		return nil, err
	}
	return itemsOf(body)
}

// maxReason bounds how much of a refusal is searched for the right that is missing.
const maxReason = 4 << 10

// refusal is the error of a refused request. A 403 names the missing right, and the rule that gives
// it. The error never repeats the body.
func (k *kubeletPods) refusal(response *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
	err := k.client.Refusal(response.StatusCode, bytes.NewReader(said))
	if response.StatusCode != http.StatusForbidden {
		return err
	}
	right, why := "nodes/pods", "; a kubelet without the feature gate KubeletFineGrainedAuthz, "+
		"which is on from Kubernetes 1.33, wants nodes/proxy in its place"
	switch {
	case bytes.Contains(said, []byte("subresource(s)=[pods")):
		why = ""
	case bytes.Contains(said, []byte("subresource(s)=[proxy]")), bytes.Contains(said, []byte("subresource=proxy")):
		right, why = "nodes/proxy", "; with the feature gate KubeletFineGrainedAuthz, "+
			"which is on from Kubernetes 1.33, the kubelet would take nodes/pods"
	case strings.Contains(k.client.Shown(), "/proxy/"):
		right, why = "nodes/proxy", ", since the URL goes through an API server"
	}
	return fmt.Errorf("%w: the owner of the token needs the verb get of %s: bind it to a ClusterRole with the rule "+
		`{apiGroups: [""], resources: [%s], verbs: [get]}%s`, err, right, right, why)
}

var errNoPodList = access.Mark("undecodable", errors.New("the answer is not a PodList in JSON: is this a kubelet's /pods?"))

// itemsOf is the pods of a PodList in JSON, not decoded.
func itemsOf(body []byte) (items [][]byte, err error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := kjson.Unmarshal(body, &list); err != nil || list.Kind != "PodList" {
		return nil, errNoPodList
	}
	for _, item := range list.Items {
		items = append(items, item)
	}
	return items, nil
}

// decodePod makes a pod of an item.
func decodePod(item []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := kjson.Unmarshal(item, pod); err != nil {
		return nil, ledger.ErrUndecodable
	}
	return pod, nil
}
