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
	// counted is how many keys etcd has counted for the answers to ranges.
	counted atomic.Int64

	// version is what servers say they have; empty: their own.
	version string
	// progress counts requests for progress.
	progress atomic.Int64
	// watched changes an answer of a watch.
	watched func(*etcdserverpb.WatchResponse)
	// held is closed by release; nil while nothing is held.
	held atomic.Pointer[chan struct{}]
	// lost is how many of the next messages break their stream.
	lost atomic.Int64
	// cluster is the cluster's ID; 0: its own.
	cluster atomic.Uint64
}

// hold breaks the streams at their next message, and lets none be opened until release.
func (p *tap) hold() {
	closed := make(chan struct{})
	p.held.Store(&closed)
}

func (p *tap) release() { close(*p.held.Swap(nil)) }

// broken returns an error as of a broken connection, once nothing is held.
func (p *tap) broken(ctx context.Context) error {
	held := p.held.Load()
	if held == nil {
		return nil
	}
	select {
	case <-*held:
	case <-ctx.Done():
	}
	return status.Error(codes.Unavailable, "error reading from server: EOF")
}

func (p *tap) config() clientv3.Config {
	return clientv3.Config{DialOptions: []grpc.DialOption{
		grpc.WithChainStreamInterceptor(p.stream), grpc.WithChainUnaryInterceptor(p.unary),
	}}
}

func (p *tap) unary(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, answer, cc, options...)
	if page, ok := answer.(*etcdserverpb.RangeResponse); ok && err == nil {
		p.counted.Add(page.Count)
	}
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
	if err := p.broken(ctx); err != nil {
		return nil, err
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
	if err := s.tap.broken(s.Context()); err != nil {
		return err
	}
	if s.tap.lost.Load() > 0 && s.tap.lost.Add(-1) >= 0 {
		return status.Error(codes.Unavailable, "error reading from server: EOF")
	}
	if id := s.tap.cluster.Load(); id != 0 {
		answer.Header.ClusterId = id
	}
	if s.tap.watched != nil {
		s.tap.watched(answer)
	}
	return nil
}
