package main

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// TestStreamsShareAToken: a client with a password asks a real etcd for one token, however many
// streams it opens, and for another once etcd refuses it.
func TestStreamsShareAToken(t *testing.T) {
	etcd, err := start(t.TempDir(), zap.NewNop(), func() {})
	require.NoError(t, err)
	defer func() { require.NoError(t, etcd.close()) }()
	root := etcd.client
	_, err = root.UserAdd(t.Context(), "root", "secret")
	require.NoError(t, err)
	_, err = root.UserGrantRole(t.Context(), "root", "root")
	require.NoError(t, err)
	_, err = root.AuthEnable(t.Context())
	require.NoError(t, err)

	t.Setenv(passwordVariable, "secret")
	config, err := clientConfig(options{endpoints: root.Endpoints(), user: "root"}, zap.NewNop())
	require.NoError(t, err)
	var asked atomic.Int64
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if method == etcdserverpb.Auth_Authenticate_FullMethodName {
			asked.Add(1)
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}))
	client, err := clientv3.New(config)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	open := func() {
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			watch, err := etcdserverpb.NewWatchClient(client.ActiveConnection()).Watch(ctx)
			require.NoError(t, err)
			require.NoError(t, watch.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
				CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte("a")},
			}}))
			answer, err := watch.Recv()
			require.NoError(t, err)
			require.True(t, answer.Created && !answer.Canceled, "%v", answer)
			cancel()
		}
	}
	open()
	require.EqualValues(t, 1, asked.Load())

	// With its users switched off and on, the server knows no token any more.
	_, err = client.AuthDisable(t.Context())
	require.NoError(t, err)
	_, err = client.AuthEnable(t.Context())
	require.NoError(t, err)
	_, err = client.Get(t.Context(), "a")
	require.NoError(t, err)
	open()
	require.EqualValues(t, 2, asked.Load(), "one more for all of the twenty")
}
