package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// endedSource is the name in Status of the checkpoint, if no owners are asked for.
const endedSource = "ended pods"

// maxEnded bounds the pods of a checkpoint, in bytes of their protobuf.
const maxEnded = 64 << 20

// endedContent is the losses of a node with their pods, in JSON.
var endedContent = checkpoint.Content[[]loss]{Magic: "TRBENDS\x01", Suffix: ".ended", Encode: encodeEnded, Decode: decodeEnded}

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
			e.place(v, entry{one.record, one.at}, held)
		}
		l.lost = append(l.lost, one)
	}
	l.take(e)
	l.saver.Store(saver)
	return saver.Run
}

type endedPod struct {
	Key                 string
	Pod, Mirror, Live   []byte `json:",omitempty"` // in protobuf
	PodFrom, StatusFrom string
	Sources             []string
	MirrorCurrent       bool
	Losses              []endedValues
}

type endedValues struct {
	At     time.Time
	Values []endedValue
}

type endedValue struct {
	Kind valueKind
	Text string
}

// encodeEnded has the pods that lost something last, as far as there is room.
func encodeEnded(losses []loss) ([]byte, error) {
	byRecord, order := map[*record][]endedValues{}, []*record(nil)
	for _, one := range slices.Backward(losses) {
		if byRecord[one.record] == nil {
			order = append(order, one.record)
		}
		values := make([]endedValue, len(one.values))
		for i, v := range one.values {
			if values[i] = (endedValue{v.kind, v.text}); v.kind == addressValue {
				values[i].Text = v.address.String()
			}
		}
		byRecord[one.record] = append(byRecord[one.record], endedValues{one.at, values})
	}
	all, size := []endedPod(nil), 0
	for _, r := range order {
		pod := r.now.Load()
		saved := endedPod{
			Key: r.key, PodFrom: pod.PodFrom, StatusFrom: pod.StatusFrom, Sources: pod.Sources,
			MirrorCurrent: pod.MirrorCurrent, Losses: byRecord[r],
		}
		for from, to := range saved.states(pod) {
			if *from == nil {
				continue
			}
			data, err := (*from).Marshal()
			if err != nil {
				return nil, err
			}
			*to = data
			size += len(data)
		}
		if size > maxEnded {
			break
		}
		all = append(all, saved)
	}
	return json.Marshal(all)
}

// states pairs the pod of each source with its place in the checkpoint.
func (saved *endedPod) states(p *Pod) iter.Seq2[**corev1.Pod, *[]byte] {
	return func(yield func(**corev1.Pod, *[]byte) bool) {
		_ = yield(&p.Pod, &saved.Pod) && yield(&p.Mirror, &saved.Mirror) && yield(&p.Live, &saved.Live)
	}
}

// decodeEnded returns the losses in the order of their times.
func decodeEnded(body []byte) (losses []loss, err error) {
	var all []endedPod
	if json.Unmarshal(body, &all) != nil {
		return nil, errNoEnded
	}
	for i := range all {
		r, err := all[i].record()
		if err != nil {
			return nil, err
		}
		for _, one := range all[i].Losses {
			values := make([]value, len(one.Values))
			for k, v := range one.Values {
				if values[k], err = v.value(); err != nil {
					return nil, err
				}
			}
			losses = append(losses, loss{r, one.At, values})
		}
	}
	slices.SortStableFunc(losses, func(a, b loss) int { return a.at.Compare(b.at) })
	return losses, nil
}

var errNoEnded = errors.New("its pods cannot be decoded")

func (saved *endedPod) record() (*record, error) {
	pod := &Pod{MergedPod: sources.MergedPod{
		PodFrom: saved.PodFrom, StatusFrom: saved.StatusFrom, Sources: saved.Sources, MirrorCurrent: saved.MirrorCurrent,
	}}
	for to, data := range saved.states(pod) {
		if *data == nil {
			continue
		}
		if *to = new(corev1.Pod); (*to).Unmarshal(*data) != nil {
			return nil, errNoEnded
		}
	}
	if pod.Pod == nil {
		return nil, errNoEnded
	}
	r := &record{key: saved.Key}
	r.now.Store(pod)
	return r, nil
}

func (v endedValue) value() (value, error) {
	if v.Kind != addressValue {
		return value{kind: v.Kind, text: v.Text}, nil
	}
	address, err := netip.ParseAddr(v.Text)
	if err != nil {
		return value{}, errNoEnded
	}
	return value{kind: v.Kind, address: address}, nil
}
