package etcd

import (
	"math"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tributary-go/tributary/internal/wire"
)

// Values of a range are decoded where gRPC has received them, in buffers that it uses again. The
// generated code would copy each value first, which is as much memory as the whole collection.

// entry is a key with its value. Both may lie in the buffer of an answer.
type entry struct {
	key, value []byte
	revision   int64 // the last change of the key
}

func entriesOf(kvs []*mvccpb.KeyValue) []entry {
	entries := make([]entry, len(kvs))
	for i, kv := range kvs {
		entries[i] = entry{kv.Key, kv.Value, kv.ModRevision}
	}
	return entries
}

// received is one message as it came; free it when its bytes are no longer needed.
type received struct{ mem.Buffer }

// inPlace is gRPC's codec for protobuf, but for messages that are received as they come.
type inPlace struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c inPlace) Unmarshal(data mem.BufferSlice, into any) error {
	if message, ok := into.(*received); ok {
		message.Buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
		return nil
	}
	return c.CodecV2.Unmarshal(data, into)
}

var receiveInPlace = grpc.ForceCodecV2(inPlace{encoding.GetCodecV2(grpcproto.Name)})

// anySize takes messages of any size, as clientv3 does: an etcd may take values larger than gRPC's
// bound of 4 MiB.
var anySize = grpc.MaxCallRecvMsgSize(math.MaxInt32)

// The fields of etcd's messages (rpc.proto, kv.proto).
const (
	streamedRange = 1 // of RangeStreamResponse
	rangeHeader   = 1 // of RangeResponse
	rangeEntry    = 2
	entryKey      = 1 // of KeyValue
	entryRevision = 3
	entryValue    = 5
)

// readAnswer reads a RangeStreamResponse. The entries lie in data; the header is nil in all answers
// but the last one.
func readAnswer(data []byte) (entries []entry, header *etcdserverpb.ResponseHeader, err error) {
	err = wire.EachField(data, streamedRange, func(field int, answer []byte) error {
		if field != streamedRange {
			return nil
		}
		return wire.EachField(answer, rangeEntry, func(field int, value []byte) error {
			switch field {
			case rangeHeader:
				header = &etcdserverpb.ResponseHeader{}
				return proto.Unmarshal(value, header)
			case rangeEntry:
				e, err := readEntry(value)
				entries = append(entries, e)
				return err
			}
			return nil
		})
	})
	return entries, header, err
}

func readEntry(data []byte) (e entry, err error) {
	for len(data) > 0 {
		field, kind, start, end := wire.Field(data)
		value := data[start:end]
		switch {
		case end == 0:
			return e, wire.ErrProtobuf
		case field == entryKey && kind == wire.Bytes:
			e.key = value
		case field == entryValue && kind == wire.Bytes:
			e.value = value
		case field == entryRevision && kind == wire.Varint:
			revision, _ := protowire.ConsumeVarint(value)
			e.revision = int64(revision)
		}
		data = data[end:]
	}
	return e, nil
}
