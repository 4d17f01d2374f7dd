package correctness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/testing/correctness"
)

// TestConcurrent judges what several clients saw at the same time. No violation is known.
func TestConcurrent(t *testing.T) {
	for _, judged := range servers {
		for _, resource := range resources {
			t.Run(judged.name+"/"+resource, func(t *testing.T) {
				judgeTraffic(t, &Store{client: connect(t, judged.start(t), resource, false), resource: resource})
			})
		}
	}
	t.Run("serve/pods/protobuf", func(t *testing.T) {
		judgeTraffic(t, &Store{client: connect(t, startServe(t), "pods", true), resource: "pods"})
	})
}

func judgeTraffic(t *testing.T, store *Store) {
	t.Helper()
	c := record(t, store)
	t.Logf("%d operations, %d watches with %d events: %v", len(c.history), len(c.watches), c.events(), c.outcomes())
	for _, err := range c.judge(t) {
		t.Error(err)
	}
}

// TestLostEvents: the judge finds that events got lost on the way to watchers.
func TestLostEvents(t *testing.T) {
	var told, lost atomic.Int64
	store := &Store{client: connect(t, startMemory(t), "pods", false), resource: "pods"}
	store.lose = func(e watch.Event) bool {
		if e.Type == watch.Bookmark || told.Add(1)%300 != 0 {
			return false
		}
		lost.Add(1)
		return true
	}
	violations := record(t, store).judge(t)
	require.NotEmpty(t, violations, "%d of %d events were lost", lost.Load(), told.Load())
	first, _, _ := strings.Cut(violations[0].Error(), "\n")
	t.Logf("%d of %d events were lost; %d violations, the first: %.200s", lost.Load(), told.Load(), len(violations), first)
}

// outcomes counts the answers by their kind.
func (c *traffic) outcomes() map[string]int {
	counts := map[string]int{}
	for _, op := range c.history {
		outcome, err := "ok", op.Response.Err
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &status):
			outcome = string(apierrors.ReasonForError(err))
		case storage.IsNotFound(err):
			outcome = "not found"
		case storage.IsExist(err):
			outcome = "exists"
		case storage.IsInvalidObj(err):
			outcome = "precondition"
		case err != nil:
			outcome = err.Error()
		}
		counts[string(op.Request.Op)+": "+outcome]++
	}
	return counts
}

func emptyModel() *correctness.Model {
	return correctness.NewEmptyModel("", func() runtime.Object { return &example.Pod{} },
		func() runtime.Object { return &example.PodList{} }, storage.APIObjectVersioner{})
}

// judge looks for an order of all operations that the model allows, then at old reads and at
// watches by that order.
func (c *traffic) judge(t *testing.T) (violations []error) {
	t.Helper()
	initial := emptyModel()
	order, err := c.order(initial)
	if err != nil {
		c.explain(t, order, initial)
		return []error{err}
	}
	var ordered []correctness.Operation
	state := initial.Clone()
	for _, i := range order {
		op := c.history[i]
		op.Response = complete(state, op.Request, op.Response)
		_, state, _ = state.Step(op.Request, op.Response)
		ordered = append(ordered, op)
	}
	replay, err := correctness.NewReplay(initial, ordered)
	require.NoError(t, err)
	for _, op := range ordered {
		if err := replayed(replay, op, state.ResourceVersion); err != nil {
			violations = append(violations, fmt.Errorf("%s: %w", op.Request.Describe(op.Response), err))
		}
	}
	validator := correctness.NewWatchValidator(c.store.Versioner(), replay, keyOf)
	for _, w := range c.watches {
		if err := validator.ValidateWatch(w.Request, w.Response); err != nil {
			violations = append(violations, fmt.Errorf("watch %s %+v: %w", w.Request.Key, w.Request.Options, err))
		}
	}
	return violations
}

// replayed judges one read. A NotFound over HTTP does not say of which version it is: any will do.
func replayed(replay *correctness.Replay, op correctness.Operation, latest uint64) error {
	err := replay.Validate(op.Request, op.Response)
	if op.Request.Op != correctness.OpGet || !storage.IsNotFound(op.Response.Err) {
		return err
	}
	for v := uint64(1); v <= latest && err != nil; v++ {
		err = replay.Validate(op.Request, correctness.Response{Err: storage.NewKeyNotFoundError(op.Request.Key, int64(v))})
	}
	return err
}

// order is the longest order that the model allows, and an error if it is not one of all.
func (c *traffic) order(initial *correctness.Model) (order []int, err error) {
	model := porcupine.Model{
		Init: func() any { return initial.Clone() },
		Step: func(state, in, out any) (bool, any) {
			m, req := state.(*correctness.Model), in.(correctness.Request)
			ok, next, _ := m.Step(req, complete(m, req, out.(correctness.Response)))
			return ok, next
		},
		Equal:             func(a, b any) bool { return a.(*correctness.Model).Equal(b.(*correctness.Model)) },
		DescribeOperation: func(in, out any) string { return in.(correctness.Request).Describe(out.(correctness.Response)) },
	}
	var all []porcupine.Operation
	for _, op := range c.history {
		all = append(all, porcupine.Operation{
			ClientId: op.ClientID, Input: op.Request, Call: op.Start.UnixNano(), Output: op.Response, Return: op.End.UnixNano(),
		})
	}
	result, info := porcupine.CheckOperationsVerbose(model, all, time.Minute)
	for _, partial := range info.PartialLinearizations() {
		for _, l := range partial {
			if len(l) > len(order) {
				order = l
			}
		}
	}
	if result != porcupine.Ok {
		return order, fmt.Errorf("%v: there is an order for %d of %d operations", result, len(order), len(all))
	}
	return order, nil
}

// complete gives an error what no answer over HTTP has of it, if it is of the kind that the model
// expects.
func complete(m *correctness.Model, req correctness.Request, resp correctness.Response) correctness.Response {
	if resp.Err == nil {
		return resp
	}
	want := perform(context.Background(), correctness.NewStorage(m), req).Err
	for _, is := range []func(error) bool{storage.IsNotFound, storage.IsExist, storage.IsInvalidObj} {
		if want != nil && is(want) && is(resp.Err) {
			return correctness.Response{Err: want}
		}
	}
	if storage.IsNotFound(resp.Err) {
		return correctness.Response{Err: storage.NewKeyNotFoundError(req.Key, int64(m.ResourceVersion))}
	}
	return resp
}

// explain says which operations could not come next in the longest order there is.
func (c *traffic) explain(t *testing.T, order []int, initial *correctness.Model) {
	t.Helper()
	state, done := initial.Clone(), map[int]bool{}
	for _, i := range order {
		op := c.history[i]
		_, state, _ = state.Step(op.Request, complete(state, op.Request, op.Response))
		done[i] = true
	}
	var first time.Time // by then one of the rest has to be next
	for i, op := range c.history {
		if !done[i] && (first.IsZero() || op.End.Before(first)) {
			first = op.End
		}
	}
	t.Logf("the state: %s", state.Describe())
	for i, op := range c.history {
		if done[i] || !op.Start.Before(first) {
			continue
		}
		want := perform(t.Context(), correctness.NewStorage(state), op.Request)
		t.Logf("none of these can be next: client %d: %s, preconditions %+v %+v, list %+v\nthe model: %+v\nthe server: %+v", op.ClientID,
			op.Request.Describe(op.Response), op.Request.Update.Preconditions, op.Request.Delete.Preconditions, op.Request.List.Options, want, op.Response)
	}
}
