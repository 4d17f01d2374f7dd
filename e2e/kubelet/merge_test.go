package kubelet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// state is the complete state of one source.
type state struct {
	Source string        `json:"source"`
	Pods   []*corev1.Pod `json:"pods"`
	Same   []place       `json:"same"`
}

// place says that a pod of a state is the same object as one of an earlier state.
type place struct {
	Pod   int `json:"pod"`
	State int `json:"state"`
	As    int `json:"as"`
}

// TestMergeLikeTheKubelet: random states of a source, and the updates that come of them.
func TestMergeLikeTheKubelet(t *testing.T) {
	seed, runs := settings(t, 500)
	random := rand.New(rand.NewPCG(seed, 1))
	k := startKubelet(t)
	told := map[sources.Op]int{}
	for run := range runs {
		states := randomStates(random)
		theirs := k.merge(t, states)
		ours := mergeOurs(t, states)
		for _, u := range ours {
			told[u.Op]++
		}
		require.Equal(t, show(t, theirs), show(t, ours), "states %d of seed %d", run, seed)
	}
	t.Logf("%d times 12 states: %v", runs, told)
	for _, op := range []sources.Op{sources.Add, sources.Update, sources.Delete, sources.Remove, sources.Reconcile} {
		require.Positive(t, told[op], "%s was never told", op)
	}
}

func (k *kubelet) merge(t *testing.T, states []state) []sources.PodUpdate {
	var answer struct {
		Updates []sources.PodUpdate `json:"updates"`
	}
	k.answer(t, map[string]any{"states": states}, &answer)
	return answer.Updates
}

// scripted is a source that sets what it is given.
type scripted struct {
	name   string
	states chan sources.Pods
}

func (s *scripted) Name() string           { return s.name }
func (s *scripted) Report() sources.Report { return sources.Report{} }

func (s *scripted) Run(ctx context.Context, sink *sources.Sink) error {
	for {
		select {
		case now := <-s.states:
			sink.Set(now)
		case <-ctx.Done():
			return nil
		}
	}
}

func mergeOurs(t *testing.T, states []state) (updates []sources.PodUpdate) {
	synctest.Test(t, func(t *testing.T) {
		source := &scripted{states[0].Source, make(chan sources.Pods)}
		s := sources.New("node-1", sources.LikeKubelet(), sources.Custom(source))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		read := make(chan struct{})
		go func() {
			defer close(read)
			for u := range s.Updates() {
				updates = append(updates, u)
			}
		}()
		for _, next := range states {
			var pods store.Indexer[*corev1.Pod]
			require.NoError(t, pods.Replace(store.Items(next.Pods...), store.At("")))
			source.states <- pods.Snapshot()
			synctest.Wait()
		}
		cancel()
		require.NoError(t, <-ended)
		<-read
	})
	return updates
}

// show is updates in a form that can be compared: of one update the order of the pods is not told
// by the kubelet.
func show(t *testing.T, updates []sources.PodUpdate) (lines []string) {
	for _, u := range updates {
		var pods []string
		for _, pod := range u.Pods {
			pod = pod.DeepCopy()
			require.NotEmpty(t, pod.Annotations[manifest.SeenAnnotation])
			delete(pod.Annotations, manifest.SeenAnnotation)
			text, err := json.Marshal(pod)
			require.NoError(t, err)
			pods = append(pods, string(text))
		}
		slices.Sort(pods)
		lines = append(lines, fmt.Sprintf("%s %s %v", u.Op, u.Source, pods))
	}
	return lines
}

// randomStates is twelve states of a source, each with some changes to the one before; what has not
// changed is mostly the same object. In the last one each UID is there once.
func randomStates(random *rand.Rand) (states []state) {
	source, pods := []string{"api", "file"}[random.IntN(2)], map[string]*corev1.Pod{}
	for len(states) < 12 {
		for range random.IntN(4) {
			name := fmt.Sprintf("pod-%d", random.IntN(4))
			switch pod := pods[name]; {
			case pod == nil:
				pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, random.IntN(2)))}}
			case random.IntN(6) == 0:
				delete(pods, name)
			default:
				pods[name] = pod.DeepCopy()
				changePod(random, pods[name])
			}
		}
		next := state{Source: source, Pods: []*corev1.Pod{}}
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			pod := pods[name]
			if random.IntN(4) == 0 {
				pod = pod.DeepCopy() // read again
				pods[name] = pod
			}
			for i, earlier := range states {
				if as := slices.Index(earlier.Pods, pod); as >= 0 && len(states) < 11 {
					next.Same = append(next.Same, place{len(next.Pods), i, as})
					break
				}
			}
			if len(states) == 11 { // a UID that is there twice is news each time
				pod = pod.DeepCopy() // which is in earlier states, too
				pod.UID = types.UID(name)
			}
			next.Pods = append(next.Pods, pod)
		}
		states = append(states, next)
	}
	return states
}

// changePod changes one thing about a pod, or sets it to what it is.
func changePod(random *rand.Rand, pod *corev1.Pod) {
	value := fmt.Sprint(random.IntN(3))
	set := func(m *map[string]string, key string) {
		if *m == nil {
			*m = map[string]string{}
		}
		if (*m)[key] = value; value == "0" {
			if delete(*m, key); len(*m) == 0 {
				*m = nil
			}
		}
	}
	switch random.IntN(14) {
	case 0:
		set(&pod.Labels, "app")
	case 1:
		set(&pod.Annotations, "note")
	case 2:
		own := []string{manifest.SourceAnnotation, manifest.SeenAnnotation, manifest.MirrorAnnotation, manifest.HashAnnotation}
		set(&pod.Annotations, own[random.IntN(len(own))])
	case 3:
		pod.Spec.NodeName = value
	case 4:
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: value}}
	case 5:
		pod.Status.Phase = corev1.PodPhase(value)
	case 6:
		pod.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: corev1.ConditionStatus(value)}}
	case 7:
		at := metav1.NewTime(time.Date(2026, 1, 1+random.IntN(2), 0, 0, 0, 0, time.UTC))
		pod.DeletionTimestamp = &at
	case 8:
		seconds := int64(random.IntN(2))
		pod.DeletionGracePeriodSeconds = &seconds
	case 9:
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	case 10:
		pod.ResourceVersion, pod.Generation = value, int64(random.IntN(3))
	case 11:
		pod.Finalizers = []string{value}
		pod.OwnerReferences = []metav1.OwnerReference{{Name: value}}
	case 12:
		pod.UID = types.UID(fmt.Sprintf("pod-%d-%d", random.IntN(4), random.IntN(2)))
	}
}
