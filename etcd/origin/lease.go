package origin

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Writes that come close to each other share a lease, since etcd keeps each lease in memory and
// writes each to its log. The bounds are those of kube-apiserver: an object may outlive its expiry
// by a twentieth of that, and by a minute at most.
const (
	leaseReuse   = time.Minute
	leaseShare   = 20   // 1/20 of the expiry
	leaseObjects = 1000 // that end together, which costs etcd one transaction each
)

// leases makes the leases of a collection of objects that expire. It is safe for concurrent use.
type leases struct {
	client *clientv3.Client
	expiry time.Duration // zero: objects stay

	mu      sync.Mutex // guards the fields below
	id      clientv3.LeaseID
	until   time.Time // when id is too old to be shared
	objects int
}

// lease is the lease to put an object with; no lease if objects stay. It asks etcd for one now and
// then, and other callers wait for that.
func (l *leases) lease(ctx context.Context) (clientv3.LeaseID, error) {
	if l.expiry == 0 {
		return clientv3.NoLease, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects < leaseObjects && time.Now().Before(l.until) {
		l.objects++
		return l.id, nil
	}
	reuse := min(l.expiry/leaseShare, leaseReuse)
	granted, err := l.client.Grant(ctx, int64((l.expiry+reuse+time.Second-1)/time.Second))
	if err != nil {
		return clientv3.NoLease, err
	}
	l.id, l.until, l.objects = granted.ID, time.Now().Add(reuse), 1
	return l.id, nil
}

// lost forgets a lease that etcd does not know any more.
func (l *leases) lost(id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.until = time.Time{}
	}
}
