package etcd

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/util/version"
)

// wake lets a connection that could not be made be tried again now: the reader has its own delays,
// and gRPC's grow to two minutes.
func (s *Source[T]) wake() {
	if connection := s.client.ActiveConnection(); connection.GetState() == connectivity.TransientFailure {
		connection.ResetConnectBackoff()
	}
}

// smallValue is the mean size below which answers come whole: 1,000 revisions, which etcd sends at
// once, are then some megabytes.
const smallValue = 4 << 10 // bytes

// stream is one watch of etcd on a gRPC stream of its own. clientv3's watcher would hide that a
// connection is lost, and would hold unread events without a bound.
type stream struct {
	answers etcdserverpb.Watch_WatchClient
	first   *etcdserverpb.ResponseHeader // of the answer that the watch was made
	cancel  context.CancelFunc
	asking  sync.WaitGroup
}

// response is one whole answer: all events of its revisions, or progress.
type response struct {
	events   []*mvccpb.Event
	revision int64 // of progress: all events up to there have come
}

// openStream begins a watch of the keys under the prefix, with the changes of the revision from.
func (s *Source[T]) openStream(ctx context.Context, from int64, progress bool) (*stream, error) {
	s.wake()
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	st := &stream{cancel: cancel}
	answers, err := etcdserverpb.NewWatchClient(s.client.ActiveConnection()).Watch(ctx, anySize)
	if err != nil {
		cancel()
		return nil, err
	}
	st.answers = answers
	// A large answer comes in fragments. But etcd measures a fragment anew with each event that it
	// puts in, which for thousands of small ones takes longer than to send them.
	create := &etcdserverpb.WatchCreateRequest{
		Key: []byte(s.prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(s.prefix)), StartRevision: from,
		PrevKv: true, ProgressNotify: progress, Fragment: !s.small.Load(),
	}
	// An error of Send is io.EOF; Recv has the reason.
	_ = answers.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}})
	answer, err := answers.Recv()
	if err == nil {
		err = canceled(answer)
	}
	if err == nil && !answer.Created {
		err = errors.New("etcd answered a watch before it was made")
	}
	if err != nil {
		cancel()
		return nil, err
	}
	st.first = answer.Header
	if progress && s.options.progress > 0 {
		st.asking.Go(func() { s.askForProgress(ctx, answers) })
	}
	return st, nil
}

// next returns the next answer; io.EOF if etcd has ended the watch. An answer that came in
// fragments is put together, since a revision may reach from one into the next.
func (st *stream) next() (r response, err error) {
	for {
		answer, err := st.answers.Recv()
		if err == nil {
			err = canceled(answer)
		}
		if err != nil {
			return response{}, err
		}
		r.events = append(r.events, answer.Events...)
		if !answer.Fragment {
			if len(r.events) == 0 {
				r.revision = answer.Header.GetRevision()
			}
			return r, nil
		}
	}
}

func (st *stream) close() {
	st.cancel()
	st.asking.Wait()
}

// canceled is why etcd has ended a watch, if it has.
func canceled(answer *etcdserverpb.WatchResponse) error {
	switch {
	case answer.CompactRevision != 0:
		return rpctypes.ErrCompacted
	case !answer.Canceled:
		return nil
	}
	for _, known := range []error{
		rpctypes.ErrCompacted, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision, rpctypes.ErrUserEmpty,
		rpctypes.ErrPermissionDenied, rpctypes.ErrNoLeader,
	} {
		if strings.HasSuffix(answer.CancelReason, known.Error()) {
			return known
		}
	}
	return io.ErrUnexpectedEOF
}

// progressSupport is whether the servers may be asked for progress.
type progressSupport = int32

const (
	supportUnknown progressSupport = iota
	supported
	unsupported
)

// askForProgress asks now and then, until ctx ends.
func (s *Source[T]) askForProgress(ctx context.Context, answers etcdserverpb.Watch_WatchClient) {
	ticker := time.NewTicker(s.options.progress)
	defer ticker.Stop()
	ask := &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
		ProgressRequest: &etcdserverpb.WatchProgressRequest{},
	}}
	for {
		asked := s.asked.Wait()
		select {
		case <-ctx.Done():
			return
		case <-asked:
		case <-ticker.C:
		}
		if !s.mayAskForProgress(ctx) {
			continue
		}
		if answers.Send(ask) != nil {
			return // Recv has the reason
		}
	}
}

// versionPatience is how long a server may take to tell its version.
const versionPatience = 2 * time.Second

// mayAskForProgress reports whether every server that answers has a version that does not tell
// progress before the events up to there. It is settled once all have answered.
func (s *Source[T]) mayAskForProgress(ctx context.Context) bool {
	if known := s.progress.Load(); known != supportUnknown {
		return known == supported
	}
	result, answered := supported, 0
	endpoints := s.client.Endpoints()
	for _, endpoint := range endpoints {
		within, cancel := context.WithTimeout(ctx, versionPatience)
		status, err := s.client.Status(within, endpoint)
		cancel()
		if err != nil {
			continue // a server that is down serves no watch
		}
		if answered++; !tellsProgressInOrder(status.Version) {
			result = unsupported
		}
	}
	if answered == len(endpoints) {
		s.progress.Store(result)
	}
	return answered > 0 && result == supported
}

// tellsProgressInOrder: etcd's issue 15220 is mended from these versions on.
func tellsProgressInOrder(server string) bool {
	v, err := version.ParseGeneric(server)
	switch {
	case err != nil:
		return false
	case v.Major() == 3 && v.Minor() == 4:
		return v.Patch() >= 31
	case v.Major() == 3 && v.Minor() == 5:
		return v.Patch() >= 13
	}
	return v.Major() > 3 || v.Minor() > 5
}
