package sharing_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// neighbours are pods that differ from the one before in every way that a walk beside it has to
// see: a field that goes, that comes back, that changes, a list that grows, shrinks, or shifts.
func neighbours() (all []*corev1.Pod) {
	container := func(name string, args ...string) corev1.Container {
		return corev1.Container{Name: name, Image: "registry.example/an-image-of:" + name, Args: args,
			Env: []corev1.EnvVar{{Name: "A_SETTING", Value: "of a container"}}}
	}
	base := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "shop", Labels: map[string]string{"app": "web"}, Finalizers: []string{"one", "two", "three"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{container("one", "x", "y", "z"), container("two")}, NodeName: "node-1",
				SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), SupplementalGroups: []int64{1, 2, 3}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 4},
		}
	}
	for i, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.Labels = nil },
		func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "b": "c"} },
		func(p *corev1.Pod) { p.Spec.SecurityContext = nil },
		func(p *corev1.Pod) { p.Spec.SecurityContext.SupplementalGroups = []int64{1, 2} },
		func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = nil },
		func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("three")) },
		func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] },
		func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "B"})
		},
		func(p *corev1.Pod) { p.Spec.Containers[1].Args = []string{"x"} },
		func(p *corev1.Pod) { p.Spec.Containers = nil },
		func(p *corev1.Pod) { p.Status.ObservedGeneration = 5 },
		func(p *corev1.Pod) { p.Status, p.Spec = corev1.PodStatus{}, corev1.PodSpec{} },
		func(p *corev1.Pod) { p.Finalizers = p.Finalizers[:2] },
	} {
		p := base()
		p.UID = "a"
		if i%2 == 1 {
			p.ResourceVersion = fmt.Sprint(i)
		}
		change(p)
		all = append(all, p)
	}
	return all
}

func TestEachObjectIsItsOwnWhateverCameBefore(t *testing.T) {
	pods := neighbours()
	memo := newMemo(t)
	var all []made
	for _, first := range pods {
		for _, second := range pods {
			for _, p := range []*corev1.Pod{first, second} {
				data, err := p.Marshal()
				require.NoError(t, err)
				all = append(all, agree(t, memo, podKind, data)...)
			}
		}
	}
	for _, m := range all {
		require.True(t, reflect.DeepEqual(m.plain, m.ours), "an object changed after it was decoded")
	}
	require.Positive(t, memo.Stats().Same)
}

// What JSON may do besides: members in another order, with null, of another form, and white space.
var neighbourSpecs = []string{
	`{}`, `{"nodeName":"a","priority":1}`, `{"priority":1,"nodeName":"a"}`, `{"priority":12,"nodeName":"a"}`, `{"priority":1, "nodeName":"a"}`, `{"priority":null,"nodeName":null}`,
	`{"priority":1,"other":{"a":[1]},"nodeName":"a"}`, `{"priority":1,"other":{"a":[1]}}`, `{"securityContext":{"runAsUser":1,"fsGroup":2}}`, `{"securityContext":{"fsGroup":2}}`,
	`{"securityContext":null}`, `{"securityContext":{}}`, `{"containers":[{"name":"a","image":"b"},{"name":"c"}]}`, `{"containers":[{"name":"a","image":"b"}]}`, `{"containers":null}`,
	`{"containers":[{"name":"a","image":"b"} ,{"name":"c","resources":{"limits":{"cpu":"1"}}}]}`, `{"containers":[{"image":"b","name":"a","resources":null},{"name":"c","resources":{}}]}`,
	`{"containers":[]}`, `{"containers":[null]}`, `{"containers":[{"name":"a","name":"b"}]}`, `{"nodeName":"a","priority":1,"priority":1}`, `null`, `7`, `{"nodeName":7}`,
}

func TestEachObjectOfJSONIsItsOwnWhateverCameBefore(t *testing.T) {
	memo := newMemo(t)
	var all []made
	for _, first := range neighbourSpecs {
		for _, second := range neighbourSpecs {
			for _, spec := range []string{first, second} {
				all = append(all, agreeTyped(t, memo, podKind, fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":"a"},"spec":%s}`, spec))...)
				all = append(all, agreeTyped(t, memo, podKind, fmt.Appendf(nil, `{"spec":%s,"metadata":{"name":"b"}}`, spec))...)
			}
		}
	}
	pods := neighbours()
	for _, first := range pods {
		for _, second := range pods {
			for _, p := range []*corev1.Pod{first, second} {
				data, err := json.Marshal(p)
				require.NoError(t, err)
				all = append(all, agreeTyped(t, memo, podKind, data)...)
			}
		}
	}
	for _, m := range all {
		require.True(t, reflect.DeepEqual(m.plain, m.ours), "an object changed after it was decoded")
	}
	require.Positive(t, memo.Stats().Same)
}

func TestAnObjectThatCannotBeDecodedIsNoOnesNeighbour(t *testing.T) {
	random := source(t)
	memo := newMemo(t)
	for range 30 {
		for _, p := range neighbours() {
			data, err := p.Marshal()
			require.NoError(t, err)
			agree(t, memo, podKind, mutated(random, data))
			agree(t, memo, podKind, data)
		}
	}
}

func TestASliceThatIsSharedHasNoRoomToGrowInto(t *testing.T) {
	memo := newMemo(t)
	for _, p := range neighbours() {
		data, err := p.Marshal()
		require.NoError(t, err)
		for _, m := range agree(t, memo, podKind, data) {
			ours := m.ours.(*corev1.Pod)
			require.Equal(t, len(ours.Finalizers), cap(ours.Finalizers))
			require.Equal(t, len(ours.Spec.Containers), cap(ours.Spec.Containers))
			for _, c := range ours.Spec.Containers {
				require.Equal(t, len(c.Args), cap(c.Args))
			}
		}
	}
}

// A place that rests leaves its field to the generated code, whose slices have room.
func TestASliceThatIsNotLookedUpHasNoRoomEither(t *testing.T) {
	memo := newMemo(t)
	for i := range 300 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{fmt.Sprint("a", i), "b", "c"}}}
		data, err := p.Marshal()
		require.NoError(t, err)
		ours := &corev1.Pod{}
		require.NoError(t, memo.Unmarshal(data, ours))
		require.Equal(t, len(ours.Finalizers), cap(ours.Finalizers), "object %d", i)
	}
	require.Less(t, memo.Stats().Lookups, uint64(600), "it rests")
}

func TestManagedFieldsArePassedOverUnread(t *testing.T) {
	memo := newMemo(t)
	memo.DropManagedFields()
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", i), Generation: 1, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: fmt.Sprint("m", i)}}}}
		want := p.DeepCopy()
		want.ManagedFields = nil
		data, err := p.Marshal()
		require.NoError(t, err)
		text, err := json.Marshal(p)
		require.NoError(t, err)

		ours := &corev1.Pod{}
		require.NoError(t, memo.Unmarshal(data, ours))
		require.Equal(t, want, ours)
		ours = &corev1.Pod{}
		require.NoError(t, memo.UnmarshalTyped(text, ours))
		require.Equal(t, want, ours)
		tree, err := memo.UnmarshalTree(text)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"name": fmt.Sprint("a", i), "generation": int64(1)}, tree["metadata"])
	}
}

// What is no map of strings on the wire is for the generated code to refuse.
func TestLabelsOfAnotherWireTypeAreRefused(t *testing.T) {
	memo := newMemo(t)
	metadata := []byte{11 << 3, 0} // labels, as a varint
	data := append([]byte{1<<3 | 2, byte(len(metadata))}, metadata...)
	require.Error(t, (&corev1.Pod{}).Unmarshal(data))
	require.Error(t, memo.Unmarshal(data, &corev1.Pod{}))
}
