package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/ledger"
)

const (
	// gap is the least time between two lists, and between two watches. All clients of a kubelet
	// share 100 requests a second.
	gap = time.Second
	// timeout limits a list, and the initial list of a watch.
	timeout = 10 * time.Second
	// maxList bounds a list in bytes.
	maxList = 64 << 20
)

// PodsAPI is a source with all pods that the kubelet of this node has. It is called "kubelet"; see
// [sources.Input.Named]. It is a [sources.StatusHolder], so that [sources.Sources.Merged] joins its
// pods with those of an API server. A bad option ends the source with an error.
func PodsAPI(options ...Option) sources.Input {
	return sources.Custom(&podsAPI{settings: newSettings(options)})
}

type podsAPI struct {
	settings settings
	keeper   access.Keeper
}

func (p *podsAPI) Name() string { return sources.KubeletSource }

// HoldsStatus makes it a sources.StatusHolder.
func (p *podsAPI) HoldsStatus() {}

func (p *podsAPI) Report() sources.Report { return p.keeper.Read() }

func (p *podsAPI) Run(ctx context.Context, sink *sources.Sink) error {
	if err := p.settings.validate(); err != nil {
		return err
	}
	to, err := connect(p.settings.socket)
	if err != nil {
		return err
	}
	defer to.close()
	p.keeper.StaleAfter(3*p.settings.interval + timeout)
	p.keeper.Mode(fmt.Sprintf("watch, and a list every %s", p.settings.interval))
	r := &run{
		settings: p.settings, keeper: &p.keeper, sink: sink, connection: to,
		log: sink.Log().WithValues("socket", p.settings.socket), do: make(chan func()),
		ledger: ledger.Open(sink.Node(), p.settings.grace, decode),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	r.running.Go(func() { r.watch(ctx) })
	return r.loop(ctx)
}

// run is one run of the source. All of it belongs to the goroutine of loop, except that the methods
// watch and stream are the watch's.
type run struct {
	settings
	*connection
	keeper  *access.Keeper
	sink    *sources.Sink
	log     logr.Logger
	running sync.WaitGroup
	do      chan func() // on the goroutine of loop

	ledger   *ledger.Ledger
	told     bool      // a state has been set
	listing  bool      // a list is under way
	asked    time.Time // when the last list was asked for
	due      time.Time // when the next one is, unless one is under way
	failures int       // of lists, in a row

	notWatched, notListed error
}

// decode makes a pod of a list or an event.
func decode(raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(raw); err != nil || pod.UID == "" {
		return nil, ledger.ErrUndecodable
	}
	return pod, nil
}

func (r *run) loop(ctx context.Context) error {
	r.due = time.Now().Add(gap) // the watch begins with a list
	for {
		timer := time.NewTimer(time.Until(r.due))
		ready := timer.C
		if r.listing {
			ready = nil
		}
		select {
		case do := <-r.do:
			do()
		case <-ready:
			r.list(ctx)
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// tell has the loop do something. It returns false once ctx has ended.
func (r *run) tell(ctx context.Context, do func()) bool {
	select {
	case r.do <- do:
		return true
	case <-ctx.Done():
		return false
	}
}

// list asks for a list.
func (r *run) list(ctx context.Context) {
	r.ledger.Asks()
	r.listing, r.asked = true, time.Now()
	r.due = r.asked.Add(r.interval)
	r.running.Go(func() {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		answer, err := r.pods.ListPods(limited, &api.ListPodsRequest{}, grpc.MaxCallRecvMsgSize(maxList))
		r.tell(ctx, func() { r.listed(answer.GetPods(), err) })
	})
}

// want makes the next list due no later than at, but a gap after the last one.
func (r *run) want(at time.Time) {
	if earliest := r.asked.Add(gap); at.Before(earliest) {
		at = earliest
	}
	if at.Before(r.due) {
		r.due = at
	}
}

func (r *run) listed(pods [][]byte, err error) {
	r.listing = false
	if err != nil {
		r.notListed = r.problem("list", err)
		r.failures++
		r.due = time.Now().Add(access.Backoff(r.failures, r.interval))
		r.note(false)
		return
	}
	r.notListed, r.failures = nil, 0
	r.ledger.List(pods, time.Now())
	r.note(true)
}

// began takes the initial list of a watch. Events may have come to the kubelet while it made that
// list, and are told after it: the next list settles them.
func (r *run) began(pods [][]byte) {
	r.notWatched = nil
	r.ledger.List(pods, time.Now())
	r.want(time.Now().Add(gap))
	r.note(true)
}

func (r *run) happened(event *api.WatchPodsEvent) {
	kind := ledger.Modified
	switch event.Type {
	case api.EventType_ADDED:
		kind = ledger.Added
	case api.EventType_DELETED:
		kind = ledger.Deleted
	}
	r.ledger.Happened(kind, event.Pod, time.Now())
	r.want(time.Now().Add(gap))
	r.note(true)
}

// stopped notes the end of a watch: later changes are in no event.
func (r *run) stopped(err error) {
	r.notWatched = r.problem("watch", err)
	r.ledger.Lost()
	if r.failures == 0 {
		r.want(time.Now())
	}
	r.note(false)
}

// note reports the health, and sets a new state if there is one.
func (r *run) note(contact bool) {
	round := r.ledger.Round(r.socket, contact)
	for _, problem := range []error{r.notListed, r.notWatched} {
		if problem != nil {
			round.Problems = append([]error{problem}, round.Problems...)
		}
	}
	// Without a watch, lists still tell everything.
	round.Complete = round.Complete && r.told && r.notListed == nil
	r.keeper.Hand(r.log, round, func() {
		if !contact || r.told && !r.ledger.Changed() {
			return
		}
		now, err := r.ledger.Snapshot()
		if err != nil {
			r.log.Error(err, "State is not set") // decode refuses the pods that a store does
			return
		}
		r.told = true
		r.sink.Set(now)
	})
}

// watch keeps a watch open until ctx ends.
func (r *run) watch(ctx context.Context) {
	failures := 0
	for {
		began := time.Now()
		synced, err := r.stream(ctx)
		if !r.tell(ctx, func() { r.stopped(err) }) {
			return
		}
		if failures++; synced {
			failures = 0
		}
		timer := time.NewTimer(max(time.Until(began.Add(gap)), access.Backoff(failures, r.interval)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// stream follows one watch to its end. synced: its initial list was complete.
func (r *run) stream(ctx context.Context) (synced bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(timeout, cancel)
	defer late.Stop()
	stream, err := r.pods.WatchPods(ctx, &api.WatchPodsRequest{}, grpc.MaxCallRecvMsgSize(maxList))
	if err != nil {
		return false, err
	}
	var initial [][]byte
	for size := 0; ; {
		event, err := stream.Recv()
		if err != nil {
			return synced, err
		}
		switch {
		case event.Type == api.EventType_INITIAL_SYNC_COMPLETE && !synced:
			if !late.Stop() {
				return false, context.DeadlineExceeded
			}
			synced = true
			pods := initial
			initial = nil
			r.tell(ctx, func() { r.began(pods) })
		case event.Type == api.EventType_INITIAL_SYNC_COMPLETE:
		case !synced:
			if size += len(event.Pod); size > maxList {
				return false, errTooLarge
			}
			initial = append(initial, event.Pod)
		default:
			r.tell(ctx, func() { r.happened(event) })
		}
	}
}
