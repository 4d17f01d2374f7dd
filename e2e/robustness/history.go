package robustness

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/histories"
)

// Content is what the model compares of an object: a value that no other write has, and the number
// of writes since the object was created.
type Content struct {
	Value string
	Count int64
}

// Persisted is one write as the server recorded it.
type Persisted struct {
	histories.Change
	Content Content // of a deletion: none
}

// Reader is what one reader was told, with the contents that it saw by resource version.
type Reader struct {
	histories.History
	Key      string // of the only object that it reads; empty: it reads all
	Contents map[string]Content
}

// Run is all that was recorded of one run.
type Run struct {
	Persisted  []Persisted
	Operations []Operation // of writers and of consistent lists
	Readers    []Reader
}

// Changes are the writes to what a reader reads.
func (r *Run) Changes(reader Reader) []histories.Change {
	changes := []histories.Change{}
	for _, p := range r.Persisted {
		if reader.Key == "" || reader.Key == p.Key {
			changes = append(changes, p.Change)
		}
	}
	return changes
}

// Check has [histories.Check] judge a reader.
func (r *Run) Check(reader Reader) error {
	return histories.Check(r.Changes(reader), reader.History)
}

// Judge has etcd's validators judge the operations and the readers.
func (r *Run) Judge(limit time.Duration) error {
	result, err := r.validate(newMapping(r.Persisted), limit)
	if err != nil {
		return err
	}
	return result.Error()
}

// validate asks etcd's validators. The error is of what they cannot be asked about.
func (r *Run) validate(m *mapping, limit time.Duration) (result validate.RobustnessResult, err error) {
	reports := []report.ClientReport{{ClientID: 0, KeyValue: []porcupine.Operation{emptyAtStart()}}}
	clients := map[int]*report.ClientReport{}
	for _, o := range r.Operations {
		mapped, ok := m.operation(o)
		if !ok {
			continue
		}
		if clients[o.Client] == nil {
			clients[o.Client] = &report.ClientReport{ClientID: o.Client}
		}
		clients[o.Client].KeyValue = append(clients[o.Client].KeyValue, mapped)
	}
	for _, id := range slices.Sorted(maps.Keys(clients)) {
		reports = append(reports, *clients[id])
	}
	for i, reader := range r.Readers {
		mapped, err := m.reader(firstReader+i*streamsPerReader, reader)
		if err != nil {
			return result, fmt.Errorf("%s: %w", reader.Reader, err)
		}
		reports = append(reports, mapped...)
	}
	return validate.ValidateAndReturnVisualize(zap.NewNop(), validate.Config{ExpectRevisionUnique: true}, reports, m.requests(), limit), nil
}

const (
	firstReader      = 1_000   // clients before it write and list
	streamsPerReader = 100_000 // each state that a reader begins with is a client's of its own
)

// emptyAtStart is what the model wants to see first: the database before any write.
func emptyAtStart() porcupine.Operation {
	return porcupine.Operation{Call: 1, Return: 2, Input: rangeOf(""), Output: rangeResponse(1, []model.KeyValue{})}
}

// mapping renumbers resource versions.
type mapping struct {
	persisted []Persisted
	versions  []uint64
	relists   bool // a deletion may be told under a later version, that of a list
}

func newMapping(persisted []Persisted) *mapping {
	m := &mapping{persisted: persisted}
	for _, p := range persisted {
		m.versions = append(m.versions, number(p.ResourceVersion))
	}
	return m
}

func number(resourceVersion string) uint64 {
	v, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return v
}

// revision is that of the last write at or before a version.
func (m *mapping) revision(version uint64) int64 {
	n, found := slices.BinarySearch(m.versions, version)
	if found {
		n++
	}
	return int64(n) + 1
}

// exact is the revision of the write that made a version.
func (m *mapping) exact(resourceVersion string) (int64, error) {
	n, found := slices.BinarySearch(m.versions, number(resourceVersion))
	if !found {
		return 0, fmt.Errorf("nothing was written at version %s", resourceVersion)
	}
	return int64(n) + 2, nil
}

const prefix, prefixEnd = "/", "0"

func put(key string, c Content) model.EtcdOperation {
	return model.EtcdOperation{Type: model.PutOperation, Put: model.PutOptions{Key: prefix + key, Value: model.ToValueOrHash(c.Value)}}
}

func deletion(key string) model.EtcdOperation {
	return model.EtcdOperation{Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: prefix + key}}
}

// told is the revision of the write that an event tells of.
func (m *mapping) told(c histories.Change) (int64, error) {
	if m.relists && c.Type == watch.Deleted {
		for n := m.revision(number(c.ResourceVersion)) - 2; n >= 0; n-- {
			if p := m.persisted[n]; p.Key == c.Key {
				return m.exact(p.ResourceVersion)
			}
		}
	}
	return m.exact(c.ResourceVersion)
}

// requests are the persisted writes, for the model to replay.
func (m *mapping) requests() []model.EtcdRequest {
	requests := make([]model.EtcdRequest, 0, len(m.persisted))
	for _, p := range m.persisted {
		do := put(p.Key, p.Content)
		if p.Type == watch.Deleted {
			do = deletion(p.Key)
		}
		requests = append(requests, model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{OperationsOnSuccess: []model.EtcdOperation{do}}})
	}
	return requests
}

func rangeOf(key string) model.EtcdRequest {
	options := model.RangeOptions{Start: prefix, End: prefixEnd}
	if key != "" {
		options = model.RangeOptions{Start: prefix + key}
	}
	return model.EtcdRequest{Type: model.Range, Range: &model.RangeRequest{RangeOptions: options}}
}

func rangeResponse(revision int64, kvs []model.KeyValue) model.MaybeEtcdResponse {
	return model.MaybeEtcdResponse{EtcdResponse: model.EtcdResponse{
		Revision: revision, Range: &model.RangeResponse{KVs: kvs, Count: int64(len(kvs))},
	}}
}

// reader maps what a reader was told: its watches, and one more client for each of its states.
func (m *mapping) reader(id int, r Reader) ([]report.ClientReport, error) {
	watches := report.ClientReport{ClientID: id}
	reports := []report.ClientReport{}
	told := uint64(0)
	for n, s := range m.silentRelists(r) {
		after := number(s.After)
		if s.Listed != nil {
			var err error
			if after, err = m.placed(r, s, told); err != nil {
				return nil, fmt.Errorf("stream %d: %w", n, err)
			}
			if after < told {
				return nil, fmt.Errorf("stream %d: the state at version %d is older than %d, of which the reader was told", n, after, told)
			}
			state, err := m.state(id+n+1, r, s.Listed, after)
			if err != nil {
				return nil, fmt.Errorf("stream %d: %w", n, err)
			}
			reports = append(reports, state)
		}
		asked := after
		if s.Listed == nil && told > 0 {
			after = min(after, told)
		}
		op, err := m.watch(r, s, after)
		if err != nil {
			return nil, fmt.Errorf("stream %d: %w", n, err)
		}
		if asked > after { // to ask for a version is to claim that all is known up to there
			claim := model.WatchResponse{IsProgressNotify: true, Revision: m.revision(asked)}
			op.Responses = append([]model.WatchResponse{claim}, op.Responses...)
		}
		watches.Watch = append(watches.Watch, op)
		if s.Listed == nil || s.Listed.ResourceVersion != "" {
			told = max(told, asked)
		} else { // of any later version at which the state was the same, nobody spoke
			for _, version := range s.Listed.Objects {
				told = max(told, number(version))
			}
		}
		for _, c := range s.Told {
			told = max(told, number(c.ResourceVersion))
		}
	}
	return append(reports, watches), nil
}

// silentRelists splits a handler's streams where a relist may have stepped over writes that undo
// each other: the handler had the new state already, and was told nothing.
func (m *mapping) silentRelists(r Reader) (all []histories.Stream) {
	for _, s := range r.Streams {
		if s.Listed == nil || s.Listed.ResourceVersion != "" || !inOrder(s.Told) {
			all = append(all, s)
			continue
		}
		held := map[string]string{}
		maps.Copy(held, s.Listed.Objects)
		from, told := 0, uint64(math.MaxUint64)
		for i, c := range s.Told {
			now := number(c.ResourceVersion)
			until := now
			if c.Type == watch.Bookmark {
				until++ // what it says of its own version is over, too
			}
			if m.undone(held, told, until) {
				all = append(all, histories.Stream{Listed: s.Listed, Told: s.Told[from:i]})
				s.Listed, from = &histories.State{Objects: maps.Clone(held)}, i
			}
			if c.Type != watch.Bookmark {
				apply(held, c)
			}
			told = now
		}
		all = append(all, histories.Stream{Listed: s.Listed, Told: s.Told[from:]})
	}
	return all
}

// inOrder reports whether a stream is what it should be: what is not must be judged as it is.
func inOrder(told []histories.Change) bool {
	event, mark := uint64(0), uint64(0)
	for _, c := range told {
		version := number(c.ResourceVersion)
		if version < event || version < mark || c.Type != watch.Bookmark && (version == event || version == mark) {
			return false
		}
		if c.Type == watch.Bookmark {
			mark = version
		} else {
			event = version
		}
	}
	return true
}

// undone reports whether there were writes between two versions, and held is the same after them.
func (m *mapping) undone(held map[string]string, after, before uint64) bool {
	state, some := maps.Clone(held), false
	for i, version := range m.versions {
		if version > after && version < before {
			some = true
			apply(state, m.persisted[i].Change)
		}
	}
	return some && maps.Equal(state, held)
}

func apply(objects map[string]string, c histories.Change) {
	if delete(objects, c.Key); c.Type != watch.Deleted {
		objects[c.Key] = c.ResourceVersion
	}
}

// state maps a state to a Range whose time is not known.
func (m *mapping) state(client int, r Reader, s *histories.State, version uint64) (report.ClientReport, error) {
	kvs := []model.KeyValue{}
	for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
		kv, err := m.keyValue(r.Contents, key, s.Objects[key])
		if err != nil {
			return report.ClientReport{}, err
		}
		kvs = append(kvs, kv)
	}
	at := m.revision(version)
	request := rangeOf(r.Key)
	request.Range.Revision = at
	return report.ClientReport{ClientID: client, KeyValue: []porcupine.Operation{{
		ClientId: client, Input: request, Call: 1, Return: math.MaxInt64, Output: rangeResponse(at, kvs),
	}}}, nil
}

func (m *mapping) keyValue(contents map[string]Content, key, version string) (model.KeyValue, error) {
	revision, err := m.exact(version)
	if err != nil {
		return model.KeyValue{}, fmt.Errorf("%s: %w", key, err)
	}
	content := contents[version]
	return model.KeyValue{Key: prefix + key, ValueRevision: model.ValueRevision{
		Value: model.ToValueOrHash(content.Value), ModRevision: revision, Version: content.Count,
	}}, nil
}

func (m *mapping) watch(r Reader, s histories.Stream, after uint64) (model.WatchOperation, error) {
	op := model.WatchOperation{Request: model.WatchRequest{
		Key: prefix + r.Key, WithPrefix: r.Key == "", Revision: m.revision(after) + 1, WithProgressNotify: true,
	}}
	for _, c := range s.Told {
		if c.Type == watch.Bookmark {
			at := m.revision(number(c.ResourceVersion))
			op.Responses = append(op.Responses, model.WatchResponse{IsProgressNotify: true, Revision: at})
			continue
		}
		at, err := m.told(c)
		if err != nil {
			return op, fmt.Errorf("%s %s: %w", c.Type, c.Key, err)
		}
		event := model.PersistedEvent{Revision: at, Event: model.Event{Type: model.DeleteOperation, Key: prefix + c.Key}}
		if c.Type != watch.Deleted {
			event.IsCreate = c.Type == watch.Added
			event.Event = model.Event{Type: model.PutOperation, Key: prefix + c.Key, Value: model.ToValueOrHash(r.Contents[c.ResourceVersion].Value)}
		}
		op.Responses = append(op.Responses, model.WatchResponse{Revision: at, Events: []model.WatchEvent{{PersistedEvent: event}}})
	}
	return op, nil
}

// ErrNeverWas is the error of a state without a version that the collection never had.
var ErrNeverWas = errors.New("the collection was in this state at no version before the next event")

// placed is the version of the state that a stream begins with, or the one that a state without a
// version must have had.
func (m *mapping) placed(r Reader, s histories.Stream, told uint64) (uint64, error) {
	if s.Listed.ResourceVersion != "" {
		return number(s.Listed.ResourceVersion), nil
	}
	last := len(m.persisted)
	for _, c := range s.Told {
		if c.Type != watch.Bookmark {
			last, _ = slices.BinarySearch(m.versions, number(c.ResourceVersion))
			break
		}
	}
	states := make([]map[string]string, 1, last+1) // by the number of writes
	states[0] = map[string]string{}
	for _, p := range m.persisted[:last] {
		next := states[len(states)-1]
		if r.Key == "" || r.Key == p.Key {
			next = maps.Clone(next)
			if delete(next, p.Key); p.Type != watch.Deleted {
				next[p.Key] = p.ResourceVersion
			}
		}
		states = append(states, next)
	}
	for n := last; n >= 0; n-- {
		version := uint64(1)
		if n > 0 {
			version = m.versions[n-1]
		}
		if maps.Equal(states[n], s.Listed.Objects) {
			return max(version, told), nil
		}
		if version < told {
			break
		}
	}
	return 0, ErrNeverWas
}
