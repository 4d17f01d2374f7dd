package robustness

import (
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"k8s.io/apimachinery/pkg/watch"
)

// Operation is a write of a client, or a consistent list.
type Operation struct {
	Client       int   // a client does one at a time
	Call, Return int64 // when, in ns since the beginning

	// Of a write.
	Type     watch.EventType // Added: a create; Modified: an update; Deleted: a delete
	Key      string
	Expected string // the resource version that the object had; empty for a create
	Content  Content
	Version  string // the one that the write made, if the answer had it
	Unknown  bool   // no answer came: it may have been written

	// Of a list.
	Listed   map[string]string // versions by key; nil for a write
	Contents map[string]Content
}

// operation maps an operation; ok is false for one that was not written, for certain.
func (m *mapping) operation(o Operation) (mapped porcupine.Operation, ok bool) {
	mapped = porcupine.Operation{ClientId: o.Client, Call: o.Call, Return: o.Return}
	if o.Listed != nil {
		kvs, at, err := m.listed(o)
		if err != nil {
			kvs, at = nil, 0 // a version that nobody wrote: nothing can explain it
		}
		mapped.Input, mapped.Output = rangeOf(""), rangeResponse(at, kvs)
		return mapped, true
	}
	do := put(o.Key, o.Content)
	if o.Type == watch.Deleted {
		do = deletion(o.Key)
	}
	expected := int64(0)
	if o.Expected != "" {
		expected = m.revision(number(o.Expected))
	}
	mapped.Input = model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{
		Conditions:          []model.EtcdCondition{{Key: prefix + o.Key, ExpectedRevision: expected}},
		OperationsOnSuccess: []model.EtcdOperation{do},
	}}
	switch {
	case o.Type == watch.Deleted:
		at, found := m.deleted(o)
		switch {
		case found && !o.Unknown:
			mapped.Output = model.MaybeEtcdResponse{Persisted: true, PersistedRevision: at}
		case found: // by this client or by another one
			mapped.Output = model.MaybeEtcdResponse{Error: "unknown"}
		case o.Unknown:
			return mapped, false
		default: // it was acknowledged, and is nowhere: no revision is right
			mapped.Output = model.MaybeEtcdResponse{Persisted: true, PersistedRevision: -1}
		}
	case o.Unknown:
		mapped.Output = model.MaybeEtcdResponse{Error: "unknown"}
	default:
		mapped.Output = model.MaybeEtcdResponse{EtcdResponse: model.EtcdResponse{
			Revision: m.revision(number(o.Version)), Txn: &model.TxnResponse{Results: []model.EtcdOperationResult{{}}},
		}}
	}
	return mapped, true
}

func (m *mapping) listed(o Operation) (kvs []model.KeyValue, at int64, err error) {
	kvs = []model.KeyValue{}
	for _, key := range slices.Sorted(maps.Keys(o.Listed)) {
		kv, err := m.keyValue(o.Contents, key, o.Listed[key])
		if err != nil {
			return nil, 0, err
		}
		kvs = append(kvs, kv)
	}
	return kvs, m.revision(number(o.Version)), nil
}

// deleted is the revision of the deletion of an object from the version that was expected.
func (m *mapping) deleted(o Operation) (revision int64, found bool) {
	last := ""
	for n, p := range m.persisted {
		if p.Key != o.Key {
			continue
		}
		if p.Type == watch.Deleted && last == o.Expected {
			return int64(n) + 2, true
		}
		last = p.ResourceVersion
	}
	return 0, false
}
