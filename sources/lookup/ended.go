package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// endedSource is the name in Status of the checkpoint, if no owners are asked for.
const endedSource = "ended pods"

// maxEnded bounds the pods of a checkpoint, in bytes of their JSON.
const maxEnded = 64 << 20

// endedContent is the losses of a node with their pods, in JSON.
var endedContent = checkpoint.Content[[]loss]{Magic: "TRBENDS\x02", Suffix: ".ended", Encode: encodeEnded, Decode: decodeEnded}

// losses has all losses, for a checkpoint. A pod that has not ended loses its present values at the
// time of the checkpoint: if no source has it after a restart, they were true until then.
func (l *Lookup) losses(now time.Time) []loss {
	all := slices.Clone(l.lost)
	there := map[*record]bool{}
	for _, one := range l.lost {
		if len(one.record.values) > 0 && !there[one.record] {
			there[one.record] = true
			all = append(all, loss{one.record, now, one.record.values})
		}
	}
	return all
}

// restore reads the losses of an earlier run, and begins to save those of this one.
func (l *Lookup) restore(ctx context.Context) (save func() (stop func())) {
	saver := checkpoint.NewSaver(checkpoint.In(l.pods.Checkpoints(), l.pods.Node(), "", endedContent), klog.FromContext(ctx))
	e := l.edit()
	for _, one := range saver.Restore() {
		if one.at.After(e.at) {
			one.at = e.at // by another clock
		}
		pod := one.now.Load()
		pod.Ended = one.at // until a source has the pod
		e.control(one.record, pod)
		for _, v := range one.values {
			e.place(v, entry{one.record, v.kind, one.at}, held)
		}
		l.lost = append(l.lost, one)
	}
	l.take(e)
	l.saver.Store(saver)
	return saver.Run
}

type endedPod struct {
	Key    string
	Pod    sources.MergedPod
	Losses []endedValues
}

type endedValues struct {
	At     time.Time
	Values [][]byte // the kind, and the text
}

// encodeEnded has the pods that lost something last, as far as there is room.
func encodeEnded(losses []loss) ([]byte, error) {
	byRecord, order := map[*record][]endedValues{}, []*record(nil)
	for _, one := range slices.Backward(losses) {
		if byRecord[one.record] == nil {
			order = append(order, one.record)
		}
		saved := endedValues{At: one.at}
		for _, v := range one.values {
			saved.Values = append(saved.Values, append([]byte{byte(v.kind)}, v.text...))
		}
		byRecord[one.record] = append(byRecord[one.record], saved)
	}
	all, size := []json.RawMessage(nil), 0
	for _, r := range order {
		data, err := json.Marshal(endedPod{r.key, r.now.Load().MergedPod, byRecord[r]})
		if err != nil {
			return nil, err
		}
		if size += len(data); size > maxEnded {
			break
		}
		all = append(all, data)
	}
	return json.Marshal(all)
}

// decodeEnded returns the losses in the order of their times.
func decodeEnded(body []byte) (losses []loss, err error) {
	var all []endedPod
	if json.Unmarshal(body, &all) != nil {
		return nil, errNoEnded
	}
	for i := range all {
		if all[i].Pod.Pod == nil {
			return nil, errNoEnded
		}
		r := &record{key: all[i].Key}
		r.now.Store(&Pod{MergedPod: all[i].Pod})
		for _, one := range all[i].Losses {
			restored := loss{record: r, at: one.At}
			for _, v := range one.Values {
				if len(v) == 0 {
					return nil, errNoEnded
				}
				restored.values = append(restored.values, value{valueKind(v[0]), string(v[1:])})
			}
			losses = append(losses, restored)
		}
	}
	slices.SortStableFunc(losses, func(a, b loss) int { return a.at.Compare(b.at) })
	return losses, nil
}

var errNoEnded = errors.New("its pods cannot be decoded")
