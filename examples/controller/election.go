package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// election decides which of several replicas works: the one that holds a lease.
type election struct {
	namespace, name, identity string
	duration, deadline, retry time.Duration
}

var errLost = errors.New("the lease was lost, and with it the right to go on")

// run waits for the lease and then calls work, once, with a context that ends when the lease is
// lost, and with ctx: its end is the signal to finish. The lease is held until work has returned,
// and then given back, so that another replica need not wait for it to run out. A lost lease is an
// error: a process that starts anew has nothing of its past to undo.
func (e election) run(ctx context.Context, client kubernetes.Interface, log logr.Logger, work func(lead, stop context.Context) error) error {
	held, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.namespace, Name: e.name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.identity},
		},
		Name:            e.name,
		LeaseDuration:   e.duration,
		RenewDeadline:   e.deadline,
		RetryPeriod:     e.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) { started <- lead },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { log.Info("The leader is", "identity", identity, "self", identity == e.identity) },
		},
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(held)
	}()
	select {
	case lead := <-started:
		if err = work(lead, ctx); lead.Err() != nil {
			err = errLost
		}
	case <-ctx.Done():
	}
	giveBack()
	<-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}
