package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// tokenAge is how long a token serves new streams. Etcd keeps one for five minutes after its last
// use.
const tokenAge = time.Minute

// sharedToken has all streams of a client share a token of etcd. The client asks for one for each,
// and etcd compares the password by bcrypt each time: a second of CPU for the kinds of a cluster
// becomes minutes on a machine that is busy.
type sharedToken struct {
	mu     sync.Mutex // held while etcd is asked
	answer *etcdserverpb.AuthenticateResponse
	asked  time.Time
}

// intercept implements grpc.UnaryClientInterceptor.
func (s *sharedToken) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	began := time.Now()
	answer, authenticates := reply.(*etcdserverpb.AuthenticateResponse)
	if !authenticates {
		err := invoke(ctx, method, request, reply, conn, options...)
		if known := rpctypes.Error(err); errors.Is(known, rpctypes.ErrInvalidAuthToken) ||
			errors.Is(known, rpctypes.ErrAuthOldRevision) || errors.Is(known, rpctypes.ErrUserEmpty) {
			s.forget(began)
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && began.Sub(s.asked) < tokenAge {
		proto.Merge(answer, s.answer)
		return nil
	}
	err := invoke(ctx, method, request, reply, conn, options...)
	if s.answer = nil; err == nil {
		s.answer, s.asked = proto.CloneOf(answer), began
	}
	return err
}

// forget drops the token if a call that began with it was refused.
func (s *sharedToken) forget(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.After(began) {
		s.answer = nil
	}
}
