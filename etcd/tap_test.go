package etcd_test

import (
	"context"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tap sits between a client and a real etcd, and lets it look like an older one, or like one with a
// known fault.
type tap struct {
	noRangeStream  bool
	refusedStreams atomic.Int64

	version  string                                             // that servers say they have; empty: their own
	progress atomic.Int64                                       // requests for progress
	watched  func(*etcdserverpb.WatchResponse, func(any) error) // changes an answer of a watch
	cluster  atomic.Uint64                                      // the cluster's ID; 0: its own
}

func (p *tap) config() clientv3.Config {
	return clientv3.Config{DialOptions: []grpc.DialOption{
		grpc.WithChainStreamInterceptor(p.stream), grpc.WithChainUnaryInterceptor(p.unary),
	}}
}

func (p *tap) unary(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, answer, cc, options...)
	if status, ok := answer.(*etcdserverpb.StatusResponse); ok && p.version != "" {
		status.Version = p.version
	}
	return err
}

func (p *tap) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if p.noRangeStream && strings.HasSuffix(method, "/RangeStream") {
		p.refusedStreams.Add(1)
		return nil, status.Error(codes.Unimplemented, "unknown method RangeStream for service etcdserverpb.KV")
	}
	stream, err := streamer(ctx, desc, cc, method, options...)
	return tapped{stream, p}, err
}

type tapped struct {
	grpc.ClientStream
	tap *tap
}

func (s tapped) SendMsg(message any) error {
	if request, ok := message.(*etcdserverpb.WatchRequest); ok && request.GetProgressRequest() != nil {
		s.tap.progress.Add(1)
	}
	return s.ClientStream.SendMsg(message)
}

func (s tapped) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	answer, ok := message.(*etcdserverpb.WatchResponse)
	if !ok || err != nil {
		return err
	}
	if id := s.tap.cluster.Load(); id != 0 {
		answer.Header.ClusterId = id
	}
	if s.tap.watched != nil {
		s.tap.watched(answer, s.ClientStream.RecvMsg)
	}
	return nil
}
