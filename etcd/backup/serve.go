package backup

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// register makes a server answer the calls that read an etcd. All others are Unimplemented.
func register(server *grpc.Server, b *Backup) {
	pb.RegisterKVServer(server, keys{Backup: b})
	pb.RegisterWatchServer(server, watches{Backup: b})
	pb.RegisterMaintenanceServer(server, maintenance{Backup: b})
}

// clusterID stands for the cluster of the backup, which the file does not name.
const clusterID = 1

func (b *Backup) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: clusterID, MemberId: 1, Revision: b.revision, RaftTerm: 1}
}

type keys struct {
	pb.UnimplementedKVServer
	*Backup
}

// Range answers with the keys of a range, in their order.
func (k keys) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	switch {
	case r.Revision > k.revision:
		return nil, rpctypes.ErrGRPCFutureRev
	case r.Revision > 0 && r.Revision < k.revision:
		return nil, rpctypes.ErrGRPCCompacted
	case r.SortOrder != pb.RangeRequest_NONE && r.SortTarget != pb.RangeRequest_KEY || r.SortOrder == pb.RangeRequest_DESCEND:
		return nil, status.Error(codes.Unimplemented, "a backup is read in the order of the keys")
	}
	selected := k.between(string(r.Key), string(r.RangeEnd))
	answer := &pb.RangeResponse{Header: k.header(), Count: int64(len(selected))}
	if r.CountOnly {
		return answer, nil
	}
	if r.Limit > 0 && int64(len(selected)) > r.Limit {
		selected, answer.More = selected[:r.Limit], true
	}
	err := guarded(func() error {
		return k.db.View(func(tx *bbolt.Tx) error {
			bucket, name := tx.Bucket(schema.Key.Name()), mvcc.NewRevBytes()
			for _, e := range selected {
				kv := &mvccpb.KeyValue{}
				value := bucket.Get(mvcc.RevToBytes(e.at, name))
				if err := proto.Unmarshal(value, kv); err != nil || string(kv.Key) != e.key {
					return errors.New("the backup file has changed since it was opened")
				}
				if r.KeysOnly {
					kv.Value = nil
				}
				answer.Kvs = append(answer.Kvs, kv)
			}
			return nil
		})
	})
	if err != nil {
		return nil, status.Error(codes.DataLoss, err.Error())
	}
	return answer, nil
}

// between is the entries from a key to an end as requests have it: empty for the key alone, a zero
// byte for all that follow.
func (b *Backup) between(key, end string) []entry {
	at := func(key string) int {
		i, _ := slices.BinarySearchFunc(b.keys, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
		return i
	}
	from, to := at(key), len(b.keys)
	switch end {
	case "":
		to = at(key + "\x00")
	case "\x00":
	default:
		to = max(from, at(end))
	}
	return b.keys[from:to]
}

type watches struct {
	pb.UnimplementedWatchServer
	*Backup
}

// Watch tells how far the backup goes if it is asked, and nothing else: nothing happens in a file.
func (w watches) Watch(stream pb.Watch_WatchServer) error {
	next := int64(0) // the ID of the next watch
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := &pb.WatchResponse{Header: w.header()}
		switch {
		case request.GetCreateRequest() != nil:
			from := request.GetCreateRequest().StartRevision
			answer.WatchId, answer.Created = next, true
			next++
			if 0 < from && from < w.revision {
				if err := stream.Send(answer); err != nil {
					return err
				}
				answer = &pb.WatchResponse{Header: w.header(), WatchId: answer.WatchId, Canceled: true, CompactRevision: w.revision}
			}
		case request.GetCancelRequest() != nil:
			answer.WatchId, answer.Canceled = request.GetCancelRequest().WatchId, true
		case request.GetProgressRequest() != nil:
			answer.WatchId = clientv3.InvalidWatchID // of all of the stream
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

type maintenance struct {
	pb.UnimplementedMaintenanceServer
	*Backup
}

// Status says which etcd this answers like.
func (m maintenance) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: m.header(), Version: version.Version, Leader: 1, RaftTerm: 1}, nil
}
