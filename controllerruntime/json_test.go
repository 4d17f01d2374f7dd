package controllerruntime

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// randomJSON makes a value of the types that DeepCopyJSON knows. Maps and slices may be nil or
// empty, and some maps have more than the eight entries of one group in Go's maps.
func randomJSON(random *rand.Rand, depth int) any {
	kinds := 10
	if depth == 0 {
		kinds = 6
	}
	switch random.Intn(kinds) {
	case 0:
		return fmt.Sprint(random.Int())
	case 1:
		return random.Int63()
	case 2:
		return random.Float64()
	case 3:
		return random.Intn(2) == 0
	case 4:
		return nil
	case 5:
		return json.Number("12.50")
	case 6, 7:
		var list []any
		if random.Intn(4) == 0 {
			list = []any{}
		}
		for range random.Intn(5) {
			list = append(list, randomJSON(random, depth-1))
		}
		return list
	}
	return randomMap(random, depth)
}

func randomMap(random *rand.Rand, depth int) map[string]any {
	if random.Intn(20) == 0 {
		return nil
	}
	made := map[string]any{}
	for range random.Intn(12) {
		made[fmt.Sprint(random.Intn(1000))] = randomJSON(random, depth-1)
	}
	for key := range made {
		if random.Intn(8) == 0 {
			delete(made, key)
		}
	}
	return made
}

// scribble changes every map and slice of a value.
func scribble(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			scribble(member)
			value[key] = "scribbled"
		}
		if value != nil {
			value["more"] = true
		}
	case []any:
		for i, element := range value {
			scribble(element)
			value[i] = "scribbled"
		}
		_ = append(value, "scribbled")
	}
}

// TestCopyDocument: a copy of random JSON is that of DeepCopyJSON, and shares nothing that the
// reader may change.
func TestCopyDocument(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	for range 300 {
		from := randomMap(random, 4)
		if from != nil && random.Intn(2) == 0 {
			from["metadata"] = randomJSON(random, 3)
		}
		before, got := runtime.DeepCopyJSON(from), copyDocument(from)
		require.Equal(t, before, got)
		scribble(got)
		require.Equal(t, before, from, "the copy shares memory with its original")
	}
}

// TestCopyDocumentRefuses: a type that is no JSON is found wherever it stands.
func TestCopyDocumentRefuses(t *testing.T) {
	for _, odd := range []map[string]any{
		{"a": 1}, {"metadata": map[string]any{"a": 1}}, {"a": map[string]any{"b": 1}}, {"a": []any{"b", 1}},
	} {
		require.PanicsWithError(t, "cannot deep copy int", func() { copyDocument(odd) })
	}
}

// TestACopyOfAFullMapStaysSmall: Go makes a table of twice the size of a map with eight members, if
// one of them is replaced.
func TestACopyOfAFullMapStaysSmall(t *testing.T) {
	allocs := func(members int) float64 {
		spec := map[string]any{"template": map[string]any{}}
		for i := range members - 1 {
			spec[fmt.Sprint(i)] = "text"
		}
		object := map[string]any{"spec": spec}
		return testing.AllocsPerRun(100, func() { copyDocument(object) })
	}
	require.InDelta(t, allocs(7), allocs(8), 0)
}
