package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// printer writes updates. It remembers the pods, to print their changes.
type printer struct {
	out   io.Writer
	paint paint
	json  *json.Encoder // nil: text
	last  map[string]*corev1.Pod
	// problem is a present problem of a source, or nil.
	problem func(source string) error
}

func newPrinter(out io.Writer, paint paint, asJSON bool, problem func(source string) error) *printer {
	p := &printer{out: out, paint: paint, last: map[string]*corev1.Pod{}, problem: problem}
	if asJSON {
		p.json = json.NewEncoder(out)
	}
	return p
}

// print writes one update: as one line of JSON, or as one line of text per pod.
func (p *printer) print(u sources.PodUpdate) error {
	if p.json != nil {
		return p.json.Encode(u)
	}
	if len(u.Pods) == 0 {
		return p.line(u, "-", p.none(u.Source))
	}
	for _, pod := range u.Pods {
		key := u.Source + " " + store.KeyOf(pod)
		what := "gone"
		if u.Op == sources.Remove {
			delete(p.last, key)
		} else {
			what = changes(p.last[key], pod)
			p.last[key] = pod
		}
		if err := p.line(u, store.KeyOf(pod), what); err != nil {
			return err
		}
	}
	return nil
}

// none is the meaning of a first state without pods. The source has reported its problem before.
func (p *printer) none(source string) string {
	if err := p.problem(source); err != nil {
		return "no pod is known: " + err.Error()
	}
	return "the source has been read and has no pods"
}

// colors are those of the operations.
var colors = map[sources.Op]string{
	sources.Add: green, sources.Update: cyan, sources.Reconcile: cyan, sources.Delete: magenta, sources.Remove: red,
}

// line fits a terminal, unless a name or an image is long.
func (p *printer) line(u sources.PodUpdate, pod, what string) error {
	op := p.paint.in(colors[u.Op], fmt.Sprintf("%-9s", u.Op))
	_, err := fmt.Fprintf(p.out, "%s %s %-4s %-24s  %s\n", p.paint.in(faint, time.Now().Format(time.TimeOnly)), op, u.Source, pod, what)
	return err
}

// changes describes the changes of a pod since the state before.
func changes(old, pod *corev1.Pod) string {
	if old == nil {
		return "new, " + string(pod.Status.Phase) + ", " + images(pod)
	}
	var all []string
	if old.Status.Phase != pod.Status.Phase {
		all = append(all, fmt.Sprintf("phase %s → %s", old.Status.Phase, pod.Status.Phase))
	} else if !apiequality.Semantic.DeepEqual(old.Status, pod.Status) {
		all = append(all, "status")
	}
	if old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
		text := "to stop"
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			text += fmt.Sprintf(" within %ds", *grace)
		}
		all = append(all, text)
	}
	if before, now := images(old), images(pod); before != now {
		all = append(all, "image "+before+" → "+tagAfter(before, now))
	} else if !apiequality.Semantic.DeepEqual(old.Spec, pod.Spec) {
		all = append(all, "spec")
	}
	all = append(all, mapChanges("label", old.Labels, pod.Labels)...)
	all = append(all, mapChanges("annotation", old.Annotations, pod.Annotations)...)
	return strings.Join(all, ", ")
}

// images are those of the containers, without their registries: JSON has all of them.
func images(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Spec.Containers {
		all = append(all, path.Base(c.Image))
	}
	return strings.Join(all, "+")
}

// tagAfter is the tag of an image if the name before the tag has not changed.
func tagAfter(before, now string) string {
	name, _, tagged := strings.Cut(before, ":")
	if tag, same := strings.CutPrefix(now, name+":"); tagged && same && !strings.Contains(tag, "+") {
		return tag
	}
	return now
}

// mapChanges names the keys of labels or annotations that differ.
func mapChanges(what string, old, now map[string]string) (all []string) {
	keys := maps.Clone(now)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, old)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, had := old[key]
		after, has := now[key]
		switch {
		case !had:
			all = append(all, fmt.Sprintf("+%s %s", what, key))
		case !has:
			all = append(all, fmt.Sprintf("-%s %s", what, key))
		case before != after:
			all = append(all, fmt.Sprintf("%s %s", what, key))
		}
	}
	return all
}
