package sources_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
)

// Options that are not inputs must not compile where a source is wanted.
func TestOnlyInputsAreInputs(t *testing.T) {
	input := reflect.TypeFor[sources.Input]()
	add, _ := reflect.TypeFor[*sources.Sources]().MethodByName("Add")
	require.Equal(t, input, add.Type.In(1))
	for _, option := range []any{sources.WithLogger, sources.LikeKubelet, sources.Checkpoint} {
		result := reflect.TypeOf(option).Out(0)
		require.False(t, result.AssignableTo(input), "%s", result)
		require.True(t, result.AssignableTo(reflect.TypeFor[sources.Option]()))
	}
	require.True(t, input.AssignableTo(reflect.TypeFor[sources.Option]()))
}

// An input is a value: naming a copy leaves the input alone, and the last method counts.
func TestInputsAreValues(t *testing.T) {
	plain := sources.Custom(newScripted("plain"))
	named := plain.Named("named").Required(time.Minute).Optional(0)
	names := func(s *sources.Sources) (all []string) {
		for _, status := range s.Status() {
			all = append(all, status.Source)
		}
		return all
	}
	s := sources.New("node-1", sources.WithLogger(logr.Discard()), plain, named)
	require.Equal(t, []string{"plain", "named"}, names(s))
	require.NoError(t, s.Add(sources.Custom(newScripted("plain")).Named("later")))
	require.Equal(t, []string{"plain", "named", "later"}, names(s))
}

// A source by the name of the API server's, without the ability, declares its pods like any other.
func TestMirrorsAreOfMirrorHolders(t *testing.T) {
	mine, api := newScripted("mine"), newScripted(sources.APISource)
	r := start(t, sources.Custom(holder{mine}), sources.Custom(api))
	mirror := annotation(manifest.MirrorAnnotation, "1")
	mine.set(t, podOf("a", "v1", mirror))
	api.set(t, podOf("b", "v1", mirror))
	r.update()
	r.update()
	merged := r.Merged()
	require.Len(t, merged, 2)
	require.NotNil(t, merged[0].Mirror)
	require.Empty(t, merged[0].Sources)
	require.Nil(t, merged[1].Mirror)
	require.Equal(t, []string{sources.APISource}, merged[1].Sources)
}
