package robustness

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/histories"
)

// JudgeReader has etcd's validators judge one reader, with writes that are exactly what was
// persisted.
func (r *Run) JudgeReader(reader Reader, limit time.Duration) error {
	return r.alone(reader).Judge(limit)
}

// JudgeRelisting has etcd's validators judge one reader of a server that lists anew, and so steps
// over changes. Such a reader may miss changes (Resumable, Reliable), and the deletion of an object
// that was created again (IsCreate). All else must hold: its events match what it asked for, are in
// order, come once and whole, none comes after a bookmark that covers it, and each of its lists is
// the state at that version, which is no older than what it was told before.
func (r *Run) JudgeRelisting(reader Reader, limit time.Duration) error {
	m := newMapping(r.Persisted)
	m.relists = true
	result, err := r.alone(reader).validate(m, limit)
	if err != nil {
		return err
	}
	// The validators of watches name the first property that is broken, and these come last.
	for _, permitted := range []string{"broke Resumable", "incorrect event IsCreate", "broke Reliable", "incorrect event prevValue"} {
		if strings.Contains(result.Watch.Message, permitted) {
			result.Watch.Status = ""
		}
	}
	return result.Error()
}

// CheckRelisting has [histories.Check] judge such a reader, without knowing what was
// written. It finds what no relist permits: a wrong order, an event that comes twice or after a
// bookmark that covers it, and that an object is added twice, or changed before it is there.
func (r *Run) CheckRelisting(reader Reader) error {
	return histories.Check(nil, reader.History)
}

// alone is a run of one reader.
func (r *Run) alone(reader Reader) *Run {
	alone := &Run{Persisted: r.Persisted, Readers: []Reader{reader}}
	last := map[string]string{}
	for i, p := range r.Persisted {
		at := int64(2*i + 10)
		alone.Operations = append(alone.Operations, Operation{
			Client: 1, Call: at, Return: at + 1, Type: p.Type, Key: p.Key, Content: p.Content, Expected: last[p.Key], Version: p.ResourceVersion,
		})
		if last[p.Key] = p.ResourceVersion; p.Type == watch.Deleted {
			delete(last, p.Key)
		}
	}
	return alone
}
