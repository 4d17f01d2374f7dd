package static

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// badPart is a rejected item; its key is empty if its name cannot be read.
type badPart struct{ key, digest string }

func (b badPart) Error() string              { return "bad " + b.digest }
func (b badPart) Part() (key, digest string) { return b.key, b.digest }

// TestBadItemsAtRandom reads random lists one after the other. Good items always count. An item
// that goes while no bad item comes is held only for a bad item of its name, and what is held goes
// with the last bad item that may stand for it.
func TestBadItemsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d"}
	for range 3000 {
		e := entry[*corev1.ConfigMap]{path: "list"}
		var lastGood []string
		var lastBad []error
		for step := range 8 {
			var good []*corev1.ConfigMap
			var goodNames []string
			bad := slices.Clone(lastBad)
			if random.IntN(2) == 0 {
				bad = nil
				for range random.IntN(3) {
					bad = append(bad, []badPart{{"a", "A"}, {"b", "B"}, {"", "x"}, {"", "y"}}[random.IntN(4)])
				}
			}
			for _, name := range names {
				if random.IntN(2) == 0 {
					good = append(good, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"step": fmt.Sprint(step)},
					})
					goodNames = append(goodNames, name)
				}
			}
			heldBefore := e.blamed
			e.take(good, bad)

			isBad := func(match func(badPart) bool) bool {
				return slices.ContainsFunc(bad, func(err error) bool {
					var part badPart
					return errors.As(err, &part) && match(part)
				})
			}
			require.True(t, slices.Equal(good, e.objects[:len(good)]))
			for _, object := range e.objects[len(good):] {
				name := object.Name
				require.NotContains(t, goodNames, name)
				named := isBad(func(b badPart) bool { return b.key == name })
				require.True(t, named || isBad(func(b badPart) bool { return b.key == "" }), "%s is held for nothing", name)
				if slices.Equal(bad, lastBad) && !named {
					require.Contains(t, heldBefore, name, "%s went later than the bad items came", name)
				}
			}
			for _, name := range lastGood {
				if isBad(func(b badPart) bool { return b.key == name }) {
					require.True(t, keysOf(e.objects)[name], "%s is declared badly, and does not stop", name)
				}
			}
			if len(bad) == 0 {
				require.Len(t, e.objects, len(good))
				require.Empty(t, e.problems(nil))
			}
			lastGood, lastBad = goodNames, bad
		}
	}
}
