package listwatch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func jsonText(t *testing.T, obj any) string {
	t.Helper()
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	return string(data)
}

// jsonEvent is an event as servers write it.
func jsonEvent(t *testing.T, event watch.EventType, pod *corev1.Pod) string {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", event, jsonText(t, pod))
}

// randomJSONWatch returns the body of a watch of n frames, some of them unusual or faulty.
func randomJSONWatch(t *testing.T, random *rand.Rand, n int) []byte {
	var body strings.Builder
	for i := range n {
		kind := []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark}[random.Intn(4)]
		pod := somePod(i, random.Intn(300))
		if kind == watch.Modified {
			pod.UID = types.UID(fmt.Sprint("changing-", i%3))
		}
		switch random.Intn(60) {
		case 0:
			pod = somePod(i, maxAhead+random.Intn(1000)) // too large for every reader
		case 1:
			pod = somePod(i, maxAhead-1200+random.Intn(1200)) // about as large as a reader
		}
		text := jsonEvent(t, kind, pod)
		object := jsonText(t, pod)
		switch random.Intn(40) {
		case 0:
			text = fmt.Sprintf(`{"object":%s,"type":%q}`, object, kind)
		case 1:
			text = fmt.Sprintf(`{"type":%q,"object":%s,"more":[{}]}`, kind, object)
		case 2:
			text = fmt.Sprintf(`{"type":%q,"object":%s,"object":%s}`, kind, object, jsonText(t, somePod(i, 7)))
		case 3:
			text = fmt.Sprintf(" {\n \"type\" : %q,\n\t\"object\": %s }", kind, object)
		case 4:
			text = strings.Replace(text, `"type":"`, `"type":"\u0041`, 1)
		case 5:
			text = strings.Replace(text, "Pod", "Node", 1)
		case 6:
			text = `{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":[}]}` + "\n"
		case 7:
			text = `{"type":"ADDED","object":{}}` + strings.Repeat(" \n", random.Intn(9000))
		case 8:
			text = text[:len(text)-1] + text // two in a line
		case 9:
			text = fmt.Sprintf(`{"type":"ERROR","object":{"kind":"Pod","metadata":{"name":"%d"}}`, i)
			text += []string{"]", "} ", "},"}[random.Intn(3)]
		}
		body.WriteString(text)
	}
	return cutAnywhere(random, []byte(body.String()))
}

// randomJSONList returns the body of a list, some of its items faulty.
func randomJSONList(t *testing.T, random *rand.Rand, n int) []byte {
	size := []int{300, 10_000}[random.Intn(2)] // within a batch, and in several ones
	items := make([]string, n)
	for i := range items {
		items[i] = jsonText(t, somePod(i, random.Intn(size)))
		switch random.Intn(60) {
		case 0:
			items[i] = `{"metadata":{"name":"x"},"spec":[}]`
		case 1:
			items[i] = "7"
		case 2:
			items[i] = jsonText(t, somePod(i, maxAhead+random.Intn(1000)))
		case 3:
			items[i] += "\n "
		}
	}
	space := strings.Repeat(" ", random.Intn(2)*random.Intn(5000))
	body := fmt.Sprintf(`{"kind":"PodList","metadata":{"resourceVersion":"4711"},%s"items":[%s],"x":[{}]}`, space, strings.Join(items, ","+space))
	return cutAnywhere(random, []byte(body))
}

func TestJSONThatIsReadAheadIsWhatIsReadAsItComes(t *testing.T) {
	manyCores(t)
	random := seeded(t)
	for range 15 {
		requireSameInPieces(t, random, randomJSONWatch(t, random, 10+random.Intn(150)), randomJSONList(t, random, 10+random.Intn(150)))
	}
}

// A complete frame does not wait for an incomplete one, nor for the line's end.
func TestEventInJSONThatComesAloneIsHandedOnAtOnce(t *testing.T) {
	requireHandedOnAtOnce(t, 5, func(pod *corev1.Pod) (frame []byte, decisive int) {
		frame = []byte(jsonEvent(t, watch.Added, pod))
		return frame, len(bytes.TrimSpace(frame))
	})
}

// Events that have arrived wait for each other, in the bytes in which they came. A quiet watch
// does not keep the large reader, though a line's end stays in it.
func TestEventsInJSONAreReadInPlace(t *testing.T) {
	body := jsonEvent(t, watch.Added, somePod(1, 2*watchBuffer)) + jsonEvent(t, watch.Modified, somePod(2, 10))
	own := bufio.NewReaderSize(strings.NewReader(body), watchBuffer)
	frames := &jsonFrames[*corev1.Pod]{in: jsonReader{own: own, r: own, limit: maxObject}}
	first, err := frames.next()
	require.NoError(t, err)
	require.NotSame(t, own, frames.in.r, "it has read ahead")
	require.True(t, frames.waits())
	second, err := frames.next()
	require.NoError(t, err)
	require.Equal(t, "ADDED", first.event)
	require.Equal(t, "MODIFIED", second.event)
	for i, object := range [][]byte{first.object, second.object} {
		var pod corev1.Pod
		require.NoError(t, json.Unmarshal(object, &pod))
		require.Equal(t, fmt.Sprint("pod-", i+1), pod.Name)
	}
	require.Nil(t, frames.in.buffer, "it was copied")
	require.False(t, frames.waits())
	_, err = frames.next()
	require.ErrorIs(t, err, io.EOF)
	require.Same(t, own, frames.in.r)
}

func TestUsualEventIsOneOfTwoMembers(t *testing.T) {
	for text, usual := range map[string]bool{
		`{"type":"ADDED","object":{"a":[{}]}}`:   true,
		`{"type":"ADDED","object":{}}`:           true,
		`{"type":"ADDED","object":{},"b":1}`:     false,
		`{"type":"ADDED","object":{} }`:          false,
		`{"type":"ADDED","object":[]}`:           false,
		`{"type":"ADDED","object":{}]`:           false,
		`{"type":"MOVED","object":{}}`:           false,
		`{"type":"A\u0044DED","object":{}}`:      false,
		`{"type":"ADDED","object": {}}`:          false,
		`{"object":{},"type":"ADDED"}`:           false,
		`{"type":"ADDED","object":{"a":"}"}}`:    true,
		`{"type":"ADDED","x":1,"object":{}}`:     false,
		`{"type":"DELETED","object":{"b":{}}  }`: false,
	} {
		in := jsonReader{r: bufio.NewReader(bytes.NewReader([]byte(text))), limit: maxObject}
		data, err := in.value()
		require.NoError(t, err)
		f, ok := usualEvent[*corev1.Pod](data, in.inner)
		require.Equal(t, usual, ok, text)
		if ok {
			require.Equal(t, text, fmt.Sprintf(`{"type":%q,"object":%s}`, f.event, f.object))
		}
	}
}
