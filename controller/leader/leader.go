// Package leader has one of several replicas work: the one that holds a Lease.
//
//	e := &leader.Election{Client: clientset.CoordinationV1(), Namespace: "shop", Name: "web"}
//	err := e.Run(ctx, func(lead, stop context.Context) error {
//		c.BaseContext = func() context.Context { return lead }
//		return c.Run(stop)
//	})
//
// The election itself is client-go's. [Election.Gate] refuses the writes of a replica that does not
// lead, such as those of a call that goes on after the lease was lost.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/age"
)

// Election is the election among replicas with a Lease of one namespace and name. Set its fields
// before use. Its methods are safe for concurrent use.
type Election struct {
	// Client reaches leases. It needs get, create and update of leases in Namespace.
	Client coordinationv1.LeasesGetter
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// Identity is the name of this replica. Default: the hostname and a random part.
	Identity string
	// LeaseDuration is how long a leader that has died is waited for, in whole seconds.
	// RenewDeadline is how long a leader tries to renew before it gives up, and RetryPeriod how
	// often it renews, or asks for the lease. Defaults: 15, 10 and 2 seconds.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	leads atomic.Pointer[term] // while work runs
}

// term is the time for which a replica leads.
type term struct {
	lead context.Context
	lock *timed
}

// ErrLost is the error of Run when the lease was lost.
var ErrLost = errors.New("leader: the lease was lost, and with it the right to go on")

// Run waits for the lease and then calls work, once: with a context that ends when the lease is
// lost, and with ctx, whose end is the signal to finish. It returns when work has. The lease is
// held until then; if work returns nil, it is given back, so that another replica need not wait for
// it to run out. If it was lost, Run fails with [ErrLost] and work's error. The end of ctx while it
// waits is no error.
func (e *Election) Run(ctx context.Context, work func(lead, stop context.Context) error) error {
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	started := make(chan context.Context, 1)
	elector, lock, err := e.newElector(ctx, started)
	if err != nil {
		return fmt.Errorf("leader: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(held)
	}()
	select {
	case lead := <-started:
		e.leads.Store(&term{lead, lock})
		err = work(lead, ctx)
		e.leads.Store(nil)
		if lead.Err() != nil {
			err = errors.Join(ErrLost, err)
		}
	case <-ctx.Done():
	}
	end()
	<-ended
	if err == nil && lock.renewed.Load() != nil {
		e.giveBack(ctx, lock)
	}
	return err
}

// newElector checks the fields.
func (e *Election) newElector(ctx context.Context, started chan<- context.Context) (*leaderelection.LeaderElector, *timed, error) {
	if e.Client == nil || e.Namespace == "" || e.Name == "" {
		return nil, nil, errors.New("give Client, Namespace and Name")
	}
	identity := e.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, nil, fmt.Errorf("the hostname cannot be read: set Identity: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	lock := &timed{Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
		Client:     e.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	log := klog.FromContext(ctx)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: e.Name,
		LeaseDuration: e.duration(), RenewDeadline: e.deadline(), RetryPeriod: cmp.Or(e.RetryPeriod, 2*time.Second),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) { started <- lead },
			OnStoppedLeading: func() {},
			OnNewLeader: func(now string) {
				log.Info("The leader is", "identity", now, "self", now == identity)
			},
		},
	})
	return elector, lock, err
}

func (e *Election) duration() time.Duration { return cmp.Or(e.LeaseDuration, 15*time.Second) }
func (e *Election) deadline() time.Duration { return cmp.Or(e.RenewDeadline, 10*time.Second) }

// giveBack lets the lease run out within a second, if this replica has it still. client-go would
// give it back whatever work has returned.
func (e *Election) giveBack(ctx context.Context, lock *timed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.deadline())
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err == nil && record.HolderIdentity == lock.Identity() {
		now := metav1.Now()
		record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime, record.AcquireTime = "", 1, now, now
		err = lock.Update(ctx, *record)
	}
	if err != nil {
		klog.FromContext(ctx).Info("The lease was not given back, and runs out", "error", err.Error())
	}
}

// Leads reports whether this replica leads: work runs, and the lease was renewed within
// RenewDeadline, by this process's own clock. It does not block.
func (e *Election) Leads() bool {
	t := e.leads.Load()
	return t != nil && t.lead.Err() == nil && age.Of(*t.lock.renewed.Load()) < e.deadline()
}

// timed is a lock that knows when its last write that has succeeded was sent.
type timed struct {
	resourcelock.Interface
	renewed atomic.Pointer[time.Time]
}

func (t *timed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return t.wrote(sent, t.Interface.Create(ctx, record))
}

func (t *timed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return t.wrote(sent, t.Interface.Update(ctx, record))
}

func (t *timed) wrote(sent time.Time, err error) error {
	if err == nil {
		t.renewed.Store(&sent)
	}
	return err
}
