package apiserver_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// skip reads one event, and forgets it.
func (w *rawWatch) skip(accept string) {
	w.t.Helper()
	if accept == wireProtobuf {
		var length [4]byte
		_, err := io.ReadFull(w.body, length[:])
		require.NoError(w.t, err)
		_, err = w.body.Discard(int(binary.BigEndian.Uint32(length[:])))
		require.NoError(w.t, err)
		return
	}
	for {
		_, err := w.body.ReadSlice('\n')
		if err == nil {
			return
		}
		require.True(w.t, errors.Is(err, bufio.ErrBufferFull), "%v", err)
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLargeObjectsInTwoFormats: what is kept of 600 updates of an object of 900 KB, which are
// watched in two formats, stays within the default bound.
func TestLargeObjectsInTwoFormats(t *testing.T) {
	const updates, size, most = 600, 900 << 10, 64 << 20
	r := newRig(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fat"}}
	last, err := r.configMaps.Create(config)
	require.NoError(t, err)
	watches := map[string]*rawWatch{}
	for _, accept := range []string{wireJSON, wireProtobuf} {
		watches[accept] = r.watchPath(t, "/api/v1/configmaps?watch=1", accept)
		watches[accept].skip(accept)
	}
	before := liveHeap()
	for i := range updates {
		next := last.DeepCopy()
		text := strings.Repeat(strconv.Itoa(i%10), size/2)
		next.Data = map[string]string{"text": text, "again": text}
		last, err = r.configMaps.Update(next)
		require.NoError(t, err)
		for accept, w := range watches {
			w.skip(accept)
		}
	}
	live := liveHeap() - before
	t.Logf("%d MB live", live>>20)
	require.Less(t, live, int64(most))
	runtime.KeepAlive(r)
}
